/// A shop's process: sells while a thread of its own brings the orders into the database, and
/// proves it all in the end. Run as many of them as you like on one Redis.
///   sale_server [URL [DATABASE]]     default: embedded: and a database in the temporary folder
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <sluice/log.hpp>
#include <sluice/open.hpp>
#include <sluice/order_worker.hpp>
#include <sluice/sale_audit.hpp>
#include <thread>

int main(int count, char** words) {
  const auto file =
      std::filesystem::temp_directory_path() / fmt::format("sale_server-{}.db", ::getpid());
  sluice::set_log_sink(
      [](sluice::LogLevel, std::string_view message) { fmt::print(stderr, "{}\n", message); });

  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  const auto orders = sluice::open_order_store(count > 2 ? words[2] : "sqlite:" + file.string());
  auto sale =
      sluice::Sale::create(
          *store,
          {.name = "bottles", .stock = 100, .limit = 1, .largest_order = 2, .number_type = "BT"})
          .get();

  sluice::OrderWorker worker{*store, sale, *orders};
  std::jthread working{[&](std::stop_token stop) { worker.run(stop); }};

  for (int buyer = 0; buyer < 200; ++buyer) {
    const auto id = std::to_string(buyer);
    const auto answer = sale.buy({id}, {"the click of " + id}).get();
    if (answer.outcome == sluice::SaleOutcome::sold_out) break;
  }
  while (sale.status().get().waiting > 0) std::this_thread::yield();
  working.request_stop();
  working.join();

  const auto audit = sluice::audit(*store, sale, *orders);
  for (const auto& check : audit.checks)
    fmt::print("{} {}: {} ({})\n", check.ok ? "ok  " : "FAIL", check.name, check.figure,
               check.detail);
  for (const auto& letter : sale.dead_letters().get())
    fmt::print("dead letter {}: {}\n", letter.id, letter.reason);
  for (const auto* const suffix : {"", "-wal", "-shm"})
    std::filesystem::remove(file.string() + suffix);
  return audit.ok() ? 0 : 1;
}
