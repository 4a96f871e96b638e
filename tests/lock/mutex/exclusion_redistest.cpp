/// Never two at once, by the record of whoever was in.
#include <thread>

#include "lock/server_lock.hpp"
#include "support/history.hpp"

namespace sluice {
namespace {

using Exclusion = ServerLock;

TEST_F(Exclusion, FourProcessesNeverOverlap) {
  const auto record = folder_ / "record";
  std::vector<test::Process> crew;
  for (int i = 0; i < 4; ++i) crew.push_back(worker("rounds", "250", record));
  for (auto& process : crew) EXPECT_EQ(process.wait(), 0);
  const auto verdict = test::check(test::read_history(record));
  EXPECT_EQ(verdict.entries, 1000U);
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(0));
  EXPECT_EQ(side_.command({"EXISTS", "sluice_lock_queue:{stock}"}), Value::integer(0));
}

TEST_F(Exclusion, KilledProcessesNeverLetTwoIn) {
  const auto record = folder_ / "record";
  std::vector<test::Process> crew;
  for (int i = 0; i < 3; ++i) crew.push_back(worker("rounds", "200", record));
  auto victim = worker("hold", "300", gate());
  entered();
  victim.kill();
  for (auto& process : crew) EXPECT_EQ(process.wait(), 0);
  const auto verdict = test::check(test::read_history(record));
  EXPECT_EQ(verdict.entries, 600U);
  EXPECT_TRUE(verdict.ok()) << verdict.text();
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
