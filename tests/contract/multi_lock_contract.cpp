// What MultiLock promises on every Store, in real time.
#include <future>
#include <thread>
#include <vector>

#include "contract/stores.hpp"
#include "sluice/lock.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Kind = ReleaseOutcome::Kind;

class MultiLockContract : public test::StoreContract {};
SLUICE_EVERY_STORE(MultiLockContract);

TEST_P(MultiLockContract, TakesAllOrNone) {
  const std::vector<std::string> names{name("a"), name("b"), name("c")};
  MultiLock lock{store(), names};
  Mutex last{store(), names[2]};
  {
    const auto in_the_way = last.acquire().get();
    EXPECT_FALSE(lock.try_acquire().get());
    Mutex first{store(), names[0]};
    EXPECT_TRUE(first.try_acquire().get());
    EXPECT_FALSE(lock.try_acquire(20ms).get());
  }
  auto held = lock.try_acquire(30s).get();
  ASSERT_TRUE(held);
  for (const auto& one : names) {
    EXPECT_FALSE((Mutex{store(), one}.try_acquire().get()));
    EXPECT_GT(held->token(one), FencingToken{});
  }
  EXPECT_EQ(held->release().get().kind, Kind::released);
  for (const auto& one : names) EXPECT_TRUE((Mutex{store(), one}.try_acquire().get()));
}

TEST_P(MultiLockContract, WaitsAndWakes) {
  MultiLock lock{store(), {name("a"), name("b")}};
  Mutex single{store(), name("b")};
  auto held = single.acquire().get();
  auto waiting =
      std::async(std::launch::async, [&] { return lock.try_acquire(1min).get().has_value(); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  held.release().get();
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(waiting.get());
  auto both = lock.acquire().get();
  auto after =
      std::async(std::launch::async, [&] { return single.try_acquire(1min).get().has_value(); });
  EXPECT_EQ(after.wait_for(50ms), std::future_status::timeout);
  both.release().get();
  ASSERT_EQ(after.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(after.get());
}

TEST_P(MultiLockContract, PhilosophersAllEat) {
  constexpr std::size_t many = 5;
  int meals[many] = {};  // no atomics: each fork protects what lies beside it
  {
    std::vector<std::jthread> table;
    for (std::size_t who = 0; who < many; ++who) {
      table.emplace_back([&, who] {
        MultiLock forks{store(),
                        {name("fork " + std::to_string(who)),
                         name("fork " + std::to_string((who + 1) % many))}};
        for (int round = 0; round < 10; ++round) {
          const auto held = forks.acquire().get();
          ++meals[who];
          ++meals[(who + 1) % many];
        }
      });
    }
  }
  for (const int eaten : meals) EXPECT_EQ(eaten, 20);
}

TEST_P(MultiLockContract, HoldsAreRenewedAndTheirLossIsNoticed) {
  MultiLock lock{store(), {name("a"), name("b")}, {.lease = 4s}};
  auto held = lock.acquire().get();
  std::promise<LostCause> told;
  held.on_lost([&](LostCause cause) { told.set_value(cause); });
  EXPECT_TRUE(is_renewed(name("a")) && is_renewed(name("b")));
  EXPECT_FALSE(lock.try_acquire().get());
  EXPECT_TRUE(held.valid());
  EXPECT_TRUE((Mutex{store(), name("a")}.force_release().get()));
  EXPECT_EQ(told.get_future().get(), LostCause::taken);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
}

}  // namespace
}  // namespace sluice
