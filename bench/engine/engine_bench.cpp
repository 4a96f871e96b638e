/// The embedded Store: what one thread gets out of it, and what is left of that when four ask at
/// once.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "sluice/lock.hpp"
#include "sluice/open.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;

constexpr int threads = 4;
constexpr std::size_t at_a_time = 16;  // between two looks at the clock

/// One operation of each kind, by the thread of that number; threads share the Store and nothing
/// else.
class Work {
 public:
  explicit Work(Store& store) : store_(store) {
    for (int i = 0; i < threads; ++i) {
      keys_.push_back(fmt::format("bench:key:{}", i));
      mutexes_.push_back(std::make_unique<Mutex>(store, fmt::format("bench:lock:{}", i)));
    }
  }

  void pair(int thread) {
    auto held = mutexes_[index(thread)]->acquire().get();
    held.release().get();
  }
  void incr(int thread) { store_.run({"INCR", keys_[index(thread)]}).get(); }
  void set(int thread) { store_.run({"SET", keys_[index(thread)], "value"}).get(); }

 private:
  static std::size_t index(int thread) { return static_cast<std::size_t>(thread); }

  Store& store_;
  std::vector<std::string> keys_;
  std::vector<std::unique_ptr<Mutex>> mutexes_;
};

struct Kind {
  std::string_view name;
  std::string_view unit;
  void (Work::*once)(int thread);
  double goal_alone;  // a second
};
constexpr Kind kinds[] = {
    {"Mutex acquire + release", "pairs/s", &Work::pair, 450'000},
    {"INCR", "commands/s", &Work::incr, 1'000'000},
    {"SET", "commands/s", &Work::set, 1'000'000},
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const auto store = open("embedded:");
  Work work{*store};
  Report report{"engine", options};
  for (const auto& kind : kinds) {
    const auto repeated = [&](int thread) {
      for (std::size_t i = 0; i < at_a_time; ++i) (work.*kind.once)(thread);
      return at_a_time;
    };
    const std::string unit{kind.unit};
    Row alone{
        .figure = fmt::format("{}, one thread", kind.name), .unit = unit, .goal = kind.goal_alone};
    Row crowd{.figure = fmt::format("{}, {} threads", kind.name, threads),
              .unit = unit,
              .peer = "one thread",
              .goal = 1.0};
    for (int round = 0; round < options.rounds; ++round) {
      alone.values.push_back(rate(options.each, 1, repeated));
      crowd.values.push_back(rate(options.each, threads, repeated));
      crowd.peer_values.push_back(alone.values.back());
    }
    report.add(std::move(alone));
    report.add(std::move(crowd));
  }
  report.print();
}
