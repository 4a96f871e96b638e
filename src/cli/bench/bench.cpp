/// `sluice bench`: what a store gives to this machine, in a few seconds. The programs under bench/
/// compare with peers.
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "base/latency.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/output.hpp"
#include "cli/programs.hpp"
#include "sluice/id.hpp"
#include "sluice/lock.hpp"
#include "sluice/number.hpp"

namespace sluice::cli {
namespace {

struct BenchArgs {
  std::chrono::milliseconds each = std::chrono::seconds{1};
  int threads = 8;
};

struct Measured {
  std::string name;
  double per_second;
  LatencyCounts latencies;
};

/// `work` by `threads` threads for `span`; each call timed.
Measured measure(std::string name, Clock& clock, std::chrono::milliseconds span, int threads,
                 const std::function<void(int)>& work) {
  std::vector<LatencyCounts> latencies(static_cast<std::size_t>(threads));
  std::atomic<std::uint64_t> done{0};
  const auto start = clock.steady();
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i) {
      crew.emplace_back([&, i] {
        for (auto now = clock.steady(); now < start + span;) {
          work(i);
          const auto after = clock.steady();
          latencies[static_cast<std::size_t>(i)].observe(after - now);
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
  for (const auto& some : latencies) measured.latencies += some;
  return measured;
}

/// What each thread does: lock, draw a number, draw an id, under names of its own.
class Workload {
 public:
  Workload(Store& store, int threads)
      : store_(store),
        prefix_("sluice:bench:" +
                std::to_string(store.clock().steady().time_since_epoch().count())),
        series_(store, prefix_ + ":series", {.digits = 12}),
        ids_(store, prefix_ + ":ids") {
    for (int i = 0; i < threads; ++i)
      mutexes_.push_back(std::make_unique<Mutex>(store, fmt::format("{}:lock:{}", prefix_, i)));
  }
  ~Workload() {
    try {
      remove_keys();
    } catch (const Error& failure) {
      complain("the keys '{}*' stay behind: {}", prefix_, failure.message());
    }
  }

  void measure_all(std::chrono::milliseconds span, int threads, std::vector<Measured>& rows) {
    const auto add = [&](const char* name, const std::function<void(int)>& work) {
      rows.push_back(measure(fmt::format("{}, {} thread{}", name, threads, threads == 1 ? "" : "s"),
                             store_.clock(), span, threads, work));
    };
    add("Mutex acquire + release", [this](int thread) {
      mutexes_[static_cast<std::size_t>(thread)]->acquire().get().release().get();
    });
    add("Series::next", [this](int) { static_cast<void>(series_.next().get()); });
    add("IdWorker::next", [this](int) { static_cast<void>(ids_.next().get()); });
  }

 private:
  void remove_keys() {
    for (const auto& pattern :
         {prefix_ + "*", "{" + prefix_ + "*", "redisson_lock_token:{" + prefix_ + "*"}) {
      const Value keys = store_.run({"KEYS", pattern}).get();
      for (const auto& key : keys.as_items()) store_.run({"DEL", key.as_text()}).get();
    }
  }

  Store& store_;
  const std::string prefix_;
  std::vector<std::unique_ptr<Mutex>> mutexes_;
  Series series_;
  IdWorker ids_;
};

int bench(const Globals& globals, const BenchArgs& args) {
  const auto store = open_store(globals);
  std::vector<Measured> rows;
  {
    Workload workload{*store, args.threads};
    for (const int threads : {1, args.threads}) workload.measure_all(args.each, threads, rows);
  }
  if (!globals.json)
    put("{}\n{:<40} {:>12} {:>12} {:>12}\n", store->describe(), "", "a second", "p50, us",
        "p99, us");
  Json json = Json::array();
  for (const auto& row : rows) {
    const auto p50 = row.latencies.quantile(0.5).count();
    const auto p99 = row.latencies.quantile(0.99).count();
    if (!globals.json) put("{:<40} {:>12.0f} {:>12} {:>12}\n", row.name, row.per_second, p50, p99);
    json.add(Json::object(
        {{"name", row.name}, {"per_second", row.per_second}, {"p50_us", p50}, {"p99_us", p99}}));
  }
  if (globals.json) print(Json::object({{"ok", true}, {"figures", json}}));
  return exit_ok;
}

}  // namespace

Command bench_command(const Globals& globals) {
  const auto args = std::make_shared<BenchArgs>();
  return {
      .name = "bench",
      .summary = std::string{program_of("bench").summary},
      .options = {{"--each", "TIME", "How long each figure is measured", into(args->each)},
                  {"--threads", "N", "The larger number of threads", into(args->threads, 1, 1024)}},
      .action = [&globals, args] { return bench(globals, *args); }};
}

}  // namespace sluice::cli
