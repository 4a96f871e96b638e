/// Never two at once, by the record of whoever was in.
#include <fstream>
#include <sstream>
#include <thread>

#include "lock/server_lock.hpp"

namespace sluice {
namespace {

using Exclusion = ServerLock;

/// What whoever was in wrote down, checked: every entry is left before the next, and tokens rise.
struct History {
  int entries = 0;
  int faults = 0;
};

History check(std::istream& record) {
  History history;
  std::string what;
  std::uint64_t token = 0;
  std::uint64_t inside = 0;
  std::uint64_t last = 0;
  while (record >> what >> token) {
    if (what == "enter") {
      if (inside != 0 || token <= last) ++history.faults;
      inside = last = token;
      ++history.entries;
    } else {
      if (inside != token) ++history.faults;
      inside = 0;
    }
  }
  if (inside != 0) ++history.faults;
  return history;
}

History check(std::istream&& record) { return check(record); }

TEST(HistoryChecker, FindsOverlapsAndFallingTokens) {
  EXPECT_EQ(check(std::istringstream{"enter 1\nleave 1\nenter 3\nleave 3\n"}).faults, 0);
  EXPECT_GT(check(std::istringstream{"enter 1\nenter 2\nleave 1\nleave 2\n"}).faults, 0);
  EXPECT_GT(check(std::istringstream{"enter 2\nleave 2\nenter 1\nleave 1\n"}).faults, 0);
  EXPECT_GT(check(std::istringstream{"enter 1\n"}).faults, 0);
}

TEST_F(Exclusion, FourProcessesNeverOverlap) {
  const auto record = folder_ / "record";
  std::vector<test::Process> crew;
  for (int i = 0; i < 4; ++i) crew.push_back(worker("rounds", "250", record));
  for (auto& process : crew) EXPECT_EQ(process.wait(), 0);
  const History history = check(std::ifstream{record});
  EXPECT_EQ(history.entries, 1000);
  EXPECT_EQ(history.faults, 0);
  EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(0));
  EXPECT_EQ(side_.command({"GET", "redisson_lock_token:{stock}"}), Value::bulk_string("1000"));
}

TEST_F(Exclusion, KilledProcessesNeverLetTwoIn) {
  const auto record = folder_ / "record";
  std::vector<test::Process> crew;
  for (int i = 0; i < 3; ++i) crew.push_back(worker("rounds", "200", record));
  auto victim = worker("hold", "300", gate());
  entered();
  victim.kill();
  for (auto& process : crew) EXPECT_EQ(process.wait(), 0);
  const History history = check(std::ifstream{record});
  EXPECT_EQ(history.entries, 600);
  EXPECT_EQ(history.faults, 0);
}

TEST_F(Exclusion, L01_SixteenThreadsCountExactly) {
  Mutex mutex{*store_, "stock"};
  int counter = 0;  // no atomic: the lock protects it
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 16; ++i) {
      crew.emplace_back([&] {
        for (int round = 0; round < 100; ++round) {
          const std::lock_guard lock{mutex};
          ++counter;
        }
      });
    }
  }
  EXPECT_EQ(counter, 1600);
  await_subscribers(channel_, 0);
}

TEST_F(Exclusion, P01_ThirtyTwoThreadsOnFiveNames) {
  std::vector<std::unique_ptr<Mutex>> mutexes;
  for (int i = 0; i < 5; ++i)
    mutexes.push_back(std::make_unique<Mutex>(*store_, "name " + std::to_string(i)));
  std::vector<int> counters(mutexes.size());
  {
    std::vector<std::jthread> crew;
    for (std::size_t i = 0; i < 32; ++i) {
      crew.emplace_back([&, i] {
        for (std::size_t round = 0; round < 50; ++round) {
          const std::size_t which = (i + round) % mutexes.size();
          const auto held = mutexes[which]->acquire().get();
          ++counters[which];
        }
      });
    }
  }
  for (const int counter : counters) EXPECT_EQ(counter, 320);
}

}  // namespace
}  // namespace sluice
