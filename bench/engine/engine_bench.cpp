/// The embedded Store: what one thread gets out of it, what is left of that when four ask at once,
/// and what keys cost that an attacker has chosen.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
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

constexpr std::size_t many = 60'000;

/// 16-byte blocks that begin with a constant of the hash that the engine once had: all of one hash
/// there, so that each key was compared with all before it.
std::vector<std::string> hostile_keys() {
  constexpr std::uint64_t odd1 = 0xa0761d6478bd642fULL;
  std::vector<std::string> keys(many, std::string(32, 'x'));
  for (std::uint64_t i = 0; i < many; ++i) {
    for (const std::size_t block : {0, 16}) std::memcpy(keys[i].data() + block, &odd1, sizeof odd1);
    std::memcpy(keys[i].data() + 8, &i, sizeof i);
  }
  return keys;
}
std::vector<std::string> random_keys() {
  std::mt19937_64 random{1};
  std::vector<std::string> keys(many, std::string(32, 'x'));
  for (auto& key : keys)
    for (std::size_t word = 0; word < key.size(); word += 8) {
      const std::uint64_t drawn = random();
      std::memcpy(key.data() + word, &drawn, sizeof drawn);
    }
  return keys;
}

/// Commands a second that put `keys` into an empty table, once: as keys, as fields, or as members.
double filled(const std::vector<std::string>& keys, std::string_view command) {
  const auto store = open("embedded:");
  std::size_t next = 0;
  return rate(std::chrono::milliseconds{1}, [&] {
    for (; next < keys.size(); ++next) {
      const std::string_view key = keys[next];
      if (command == "SET") store->run({command, key, "v"}).get();
      if (command == "HSET") store->run({command, "table", key, "v"}).get();
      if (command == "ZADD") store->run({command, "table", "1", key}).get();
    }
    return keys.size();
  });
}

void measure_hostile_keys(Report& report, int rounds) {
  const auto hostile = hostile_keys();
  const auto usual = random_keys();
  for (const std::string_view command : {"SET", "HSET", "ZADD"}) {
    Row row{.figure = fmt::format("{}, {} hostile keys", command, many),
            .unit = "commands/s",
            .peer = "random keys",
            .goal = 1 / 1.5};
    for (int round = 0; round < rounds; ++round) {
      row.values.push_back(filled(hostile, command));
      row.peer_values.push_back(filled(usual, command));
    }
    report.add(std::move(row));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const auto store = open("embedded:");
  Work work{*store};
  Report report{"engine", options};
  for (const auto& kind : kinds) {
    if (!options.wants("kinds")) break;
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
  if (options.wants("hostile")) measure_hostile_keys(report, options.rounds);
  report.print();
}
