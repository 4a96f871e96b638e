/// All or none on a real server, from many threads.
#include <thread>

#include "lock/server_lock.hpp"
#include "support/history.hpp"

namespace sluice {
namespace {

class MultiLockServer : public ServerLock {
 protected:
  static std::string name(std::size_t which) { return "name " + std::to_string(which); }
};

TEST_F(MultiLockServer, RandomPairsOfFiveNamesNeverOverlapNorDeadlock) {
  constexpr std::size_t names = 5;
  constexpr std::size_t threads = 16;
  constexpr std::size_t rounds = 15;
  {
    std::vector<std::jthread> crew;
    for (std::size_t who = 0; who < threads; ++who) {
      crew.emplace_back([&, who] {
        std::vector<std::unique_ptr<test::Recorder>> records;
        for (std::size_t i = 0; i < names; ++i)
          records.push_back(
              std::make_unique<test::Recorder>(folder_ / name(i), "thread " + std::to_string(who)));
        for (std::size_t round = 0; round < rounds; ++round) {
          const std::size_t one = (who * 7 + round * 3) % names;
          const std::size_t two = (one + 1 + (who + round) % (names - 1)) % names;
          MultiLock both{*store_, {name(one), name(two)}};
          auto held = both.acquire().get();
          records[one]->enter(held.token(name(one)).value);
          records[two]->enter(held.token(name(two)).value);
          records[two]->leave();
          records[one]->leave();
          EXPECT_EQ(held.release().get().kind, Kind::released);
        }
      });
    }
  }
  std::size_t entries = 0;
  for (std::size_t i = 0; i < names; ++i) {
    const auto verdict = test::check(test::read_history(folder_ / name(i)));
    EXPECT_TRUE(verdict.ok()) << name(i) << '\n' << verdict.text();
    entries += verdict.entries;
    EXPECT_EQ(side_.command({"EXISTS", name(i), "sluice_lock_queue:{" + name(i) + "}"}),
              Value::integer(0));
  }
  EXPECT_EQ(entries, 2 * threads * rounds);
}

TEST_F(MultiLockServer, SingleAndManyWaitForEachOther) {
  int counters[3] = {};  // no atomics: the locks protect them
  {
    std::vector<std::jthread> crew;
    for (std::size_t who = 0; who < 6; ++who) {
      crew.emplace_back([&, who] {
        MultiLock all{*store_, {name(0), name(1), name(2)}};
        Mutex one{*store_, name(who % 3)};
        for (int round = 0; round < 20; ++round) {
          if (who < 3) {
            const auto held = all.acquire().get();
            for (int& counter : counters) ++counter;
          } else {
            const auto held = one.acquire().get();
            ++counters[who % 3];
          }
        }
      });
    }
  }
  for (const int counter : counters) EXPECT_EQ(counter, 80);
}

TEST_F(MultiLockServer, DeadHolderOfOneNameIsWaitedFor) {
  auto victim = worker("hold", "1500", gate());
  entered();
  MultiLock both{*store_, {"another", "stock"}};
  EXPECT_FALSE(both.try_acquire().get());
  EXPECT_EQ(side_.command({"EXISTS", "another"}), Value::integer(0));
  victim.kill();
  EXPECT_TRUE(both.try_acquire(20s).get());
}

}  // namespace
}  // namespace sluice
