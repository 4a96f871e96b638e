/// `sluice bench`: what a store gives to this machine, in a few seconds. The programs under bench/
/// compare with peers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/latency.hpp"
#include "sluice/id.hpp"
#include "sluice/lock.hpp"
#include "sluice/number.hpp"

namespace sluice::cli {
namespace {

struct BenchArgs {
  std::string each = "1s";
  int threads = 8;
};

struct Measured {
  std::string name;
  double per_second;
  Latencies latencies;
};

/// `work` by `threads` threads for `span`; each call timed.
Measured measure(std::string name, Clock& clock, std::chrono::milliseconds span, int threads,
                 const std::function<void(int)>& work) {
  std::vector<Latencies> latencies(static_cast<std::size_t>(threads));
  std::atomic<std::uint64_t> done{0};
  const auto start = clock.steady();
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i) {
      crew.emplace_back([&, i] {
        for (auto now = clock.steady(); now < start + span;) {
          work(i);
          const auto after = clock.steady();
          latencies[static_cast<std::size_t>(i)].add(after - now);
          now = after;
          done.fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
  }
  Measured measured{
      std::move(name),
      static_cast<double>(done) / std::chrono::duration<double>(clock.steady() - start).count(),
      {}};
  for (const auto& some : latencies) measured.latencies.add(some.counts());
  return measured;
}

int bench(const Globals& globals, const BenchArgs& args) {
  const auto span = parse_duration(args.each);
  const auto store = open_store(globals);
  Clock& clock = store->clock();
  const std::string prefix =
      "sluice:bench:" + std::to_string(clock.steady().time_since_epoch().count());
  std::vector<std::unique_ptr<Mutex>> mutexes;
  for (int i = 0; i < args.threads; ++i)
    mutexes.push_back(std::make_unique<Mutex>(*store, fmt::format("{}:lock:{}", prefix, i)));
  Series series{*store, prefix + ":series", {.digits = 12}};
  IdWorker ids{*store, prefix + ":ids"};

  const auto lock = [&](int thread) {
    mutexes[static_cast<std::size_t>(thread)]->acquire().get().release().get();
  };
  const auto number = [&](int) { static_cast<void>(series.next().get()); };
  const auto id = [&](int) { ids.next().get(); };
  std::vector<Measured> rows;
  for (const int threads : {1, args.threads}) {
    const std::string suffix = fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
    rows.push_back(measure("Mutex acquire + release" + suffix, clock, span, threads, lock));
    rows.push_back(measure("Series::next" + suffix, clock, span, threads, number));
    rows.push_back(measure("IdWorker::next" + suffix, clock, span, threads, id));
  }
  for (const auto& pattern :
       {prefix + "*", "{" + prefix + "*", "redisson_lock_token:{" + prefix + "*"}) {
    const Value keys = store->run({"KEYS", pattern}).get();
    for (const auto& key : keys.as_items()) store->run({"DEL", key.as_text()}).get();
  }

  nlohmann::json json = nlohmann::json::array();
  if (!globals.json)
    fmt::print("{}\n{:<40} {:>12} {:>12} {:>12}\n", store->describe(), "", "a second", "p50, us",
               "p99, us");
  for (const auto& row : rows) {
    const auto p50 = row.latencies.quantile(0.5).count();
    const auto p99 = row.latencies.quantile(0.99).count();
    if (!globals.json)
      fmt::print("{:<40} {:>12.0f} {:>12} {:>12}\n", row.name, row.per_second, p50, p99);
    json.push_back(
        {{"name", row.name}, {"per_second", row.per_second}, {"p50_us", p50}, {"p99_us", p99}});
  }
  if (globals.json) fmt::print("{}\n", nlohmann::json{{"ok", true}, {"figures", json}}.dump());
  return exit_ok;
}

}  // namespace

void add_bench_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const command = app.add_subcommand("bench", "Measure a store from this machine");
  const auto args = std::make_shared<BenchArgs>();
  command->add_option("--each", args->each, "How long each figure is measured")
      ->capture_default_str();
  command->add_option("--threads", args->threads, "The larger number of threads")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->callback(
      [&globals, &action, args] { action = [&globals, args] { return bench(globals, *args); }; });
}

}  // namespace sluice::cli
