#include "sale/crash_roles.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <system_error>
#include <thread>

#include "sluice/open.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

SaleDefinition definition_of(const CrashSetting& setting) {
  return {.name = setting.sale, .stock = crash_stock, .number_type = "MT", .digits = 6};
}

/// One line a reply, in one write: what the kernel has taken survives SIGKILL.
class Journal {
 public:
  explicit Journal(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw std::system_error{errno, std::generic_category(), path.string()};
  }
  ~Journal() { ::close(file_); }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void write(const std::string& buyer, const std::string& request, const Admission& answer) const {
    const auto line =
        fmt::format("{},{},{},{},{}\n", buyer, request, to_string(answer.outcome),
                    answer.order ? answer.order->number : "", answer.order ? answer.order->id : 0);
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::system_error{errno, std::generic_category(), "journal"};
  }

 private:
  int file_;
};

std::size_t lines_in(const std::filesystem::path& path) {
  std::ifstream file{path};
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) ++lines;
  return lines;
}

/// Asks until there is an answer: a failed call is asked again with the same request id.
Admission buy(Sale& sale, const std::string& buyer, const std::string& request) {
  for (;;) {
    try {
      return sale.buy(BuyerId{buyer}, RequestId{request}).get();
    } catch (const Error& error) {
      if (error.errc() != Errc::connection && error.errc() != Errc::timeout) throw;
    }
  }
}

/// Round after round, each of the seller's buyers clicks once. The journal says how far an earlier
/// life came.
void sell(Sale& sale, const std::filesystem::path& path, int index, int sellers) {
  const auto done = lines_in(path);
  const Journal journal{path};
  std::size_t at = 0;
  for (int click = 0; click < crash_clicks; ++click)
    for (int buyer = index; buyer < crash_buyers; buyer += sellers) {
      if (at++ < done) continue;
      const auto name = std::to_string(buyer);
      const std::string request = click % 3 < 2 ? "first" : "second";
      journal.write(name, request, buy(sale, name, request));
    }
}

OrderWorkerOptions worker_options() {
  return {.batch = 500,
          .idle_wait = 20ms,
          .claim_after = 300ms,
          .first_pause = 5ms,
          .longest_pause = 50ms};
}

std::filesystem::path journal_of(const CrashSetting& setting, int index) {
  return setting.journals / ("seller-" + std::to_string(index));
}

int be_seller(const CrashSetting& setting, int index, int sellers) {
  const auto store = open(setting.url);
  auto sale = Sale::create(*store, definition_of(setting)).get();
  sell(sale, journal_of(setting, index), index, sellers);
  return 0;
}

/// What the store answers when it is there again, and the sale recovered.
Admission buy_patiently(Sale& sale, const std::string& buyer) {
  for (;; std::this_thread::sleep_for(10ms)) {
    try {
      auto answer = sale.buy(BuyerId{buyer}, RequestId{"r"}).get();
      if (answer.outcome != SaleOutcome::recovering && answer.outcome != SaleOutcome::not_loaded)
        return answer;
    } catch (const Error& error) {
      if (error.errc() == Errc::protocol || error.errc() == Errc::bad_argument) throw;
    }
  }
}

std::unique_ptr<Store> open_patiently(const std::string& url) {
  for (;; std::this_thread::sleep_for(10ms)) {
    try {
      return open(url);
    } catch (const Error&) {  // between the end of a server and its successor
    }
  }
}

Sale create_patiently(Store& store, const CrashSetting& setting) {
  for (;; std::this_thread::sleep_for(10ms)) {
    try {
      return Sale::create(store, definition_of(setting)).get();
    } catch (const Error& error) {
      if (error.errc() == Errc::config_mismatch) throw;
    }
  }
}

int be_patient_seller(const CrashSetting& setting, int index, int sellers) {
  const auto store = open_patiently(setting.url);
  auto sale = create_patiently(*store, setting);
  const Journal journal{journal_of(setting, index)};
  for (;;)
    for (int buyer = index; buyer < crash_buyers; buyer += sellers) {
      if (std::filesystem::exists(setting.journals / "end")) return 0;
      const auto name = std::to_string(buyer);
      journal.write(name, "r", buy_patiently(sale, name));
    }
}

int be_worker(const CrashSetting& setting) {
  sigset_t terminate;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &terminate, nullptr);
  const auto store = open_patiently(setting.url);
  const auto orders = open_order_store(setting.orders);
  const auto sale = create_patiently(*store, setting);
  OrderWorker worker{*store, sale, *orders, worker_options()};
  std::jthread working{[&](std::stop_token stop) { worker.run(stop); }};
  int signal = 0;
  sigwait(&terminate, &signal);
  return 0;
}

int be_shop(const CrashSetting& setting) {
  constexpr int sellers = 8;
  const auto store = open(setting.url);
  const auto orders = open_order_store(setting.orders);
  auto sale = Sale::create(*store, definition_of(setting)).get();
  OrderWorker worker{*store, sale, *orders, worker_options()};
  const std::jthread working{[&](std::stop_token stop) { worker.run(stop); }};
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < sellers; ++i)
      crew.emplace_back([&, i] { sell(sale, journal_of(setting, i), i, sellers); });
  }
  while (sale.status().get().waiting > 0) std::this_thread::sleep_for(5ms);
  return 0;
}

Process start(const std::string& role, const CrashSetting& setting, int index = 0,
              int sellers = 1) {
  return Process{{std::filesystem::read_symlink("/proc/self/exe").string(), "--role", role,
                  setting.url, setting.sale, setting.orders, setting.journals.string(),
                  std::to_string(index), std::to_string(sellers)}};
}

}  // namespace

Process start_seller(const CrashSetting& setting, int index, int sellers) {
  return start("seller", setting, index, sellers);
}
Process start_patient_seller(const CrashSetting& setting, int index, int sellers) {
  return start("patient", setting, index, sellers);
}
Process start_worker(const CrashSetting& setting) { return start("worker", setting); }
Process start_shop(const CrashSetting& setting) { return start("shop", setting); }

std::vector<Told> read_journals(const std::filesystem::path& folder) {
  std::vector<Told> all;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    if (entry.path().filename() == "end") continue;
    std::ifstream file{entry.path()};
    for (std::string line; std::getline(file, line) && !file.eof();) {
      std::istringstream words{line};
      Told told;
      std::string id;
      std::getline(words, told.buyer, ',');
      std::getline(words, told.request, ',');
      std::getline(words, told.outcome, ',');
      std::getline(words, told.number, ',');
      std::getline(words, id);
      told.id = std::stoll(id);
      all.push_back(std::move(told));
    }
  }
  return all;
}

std::optional<int> play_role(int argc, char** argv) {
  const std::vector<std::string> words{argv, argv + argc};
  if (words.size() != 9 || words[1] != "--role") return std::nullopt;
  const CrashSetting setting{
      .url = words[3], .sale = words[4], .orders = words[5], .journals = words[6]};
  try {
    if (words[2] == "seller") return be_seller(setting, std::stoi(words[7]), std::stoi(words[8]));
    if (words[2] == "patient")
      return be_patient_seller(setting, std::stoi(words[7]), std::stoi(words[8]));
    if (words[2] == "worker") return be_worker(setting);
    return be_shop(setting);
  } catch (const std::exception& failure) {
    std::cerr << words[2] << ": " << failure.what() << '\n';
    return 70;
  }
}

}  // namespace sluice::test
