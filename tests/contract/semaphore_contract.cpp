// What both semaphores promise on every Store, in real time.
#include <future>
#include <thread>
#include <vector>

#include "contract/stores.hpp"
#include "sluice/metrics.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Kind = ReleaseOutcome::Kind;

class SemaphoreContract : public test::StoreContract {};
SLUICE_EVERY_STORE(SemaphoreContract);
SLUICE_SHARDED_STORE(SemaphoreContract);

TEST_P(SemaphoreContract, LetsSoManyIn) {
  Semaphore desks{store(), name("desks")};
  EXPECT_FALSE(desks.try_acquire().get());
  EXPECT_TRUE(desks.try_set_permits(3).get());
  auto two = desks.try_acquire(2).get();
  ASSERT_TRUE(two);
  EXPECT_FALSE(desks.try_acquire(2, 20ms).get());
  EXPECT_EQ(desks.available().get(), 1);
  EXPECT_EQ(two->release().get().kind, Kind::released);
  EXPECT_EQ(desks.available().get(), 3);
}

TEST_P(SemaphoreContract, CountsAreChanged) {
  Semaphore desks{store(), name("desks")};
  desks.try_set_permits(2).get();
  desks.add_permits(3).get();
  EXPECT_EQ(desks.drain().get(), 5);
  desks.release_unowned(4).get();
  EXPECT_EQ(desks.available().get(), 4);
  PermitSemaphore keys{store(), name("keys")};
  keys.set_permits(2).get();
  const auto key = keys.take(unlimited_lease).get();
  keys.set_permits(5).get();
  EXPECT_EQ(keys.available().get(), 4);
  EXPECT_TRUE(keys.release(*key).get());
  EXPECT_FALSE(keys.release(*key).get());
  EXPECT_EQ(keys.available().get(), 5);
}

TEST_P(SemaphoreContract, WaitersAreServedInTheirOrder) {
  Semaphore desks{store(), name("desks")};
  desks.try_set_permits(2).get();
  auto held = desks.acquire(2).get();
  auto big =
      std::async(std::launch::async, [&] { return desks.try_acquire(2, 1min).get().has_value(); });
  EXPECT_EQ(big.wait_for(50ms), std::future_status::timeout);
  EXPECT_FALSE(desks.try_acquire(1).get());
  held.release().get();
  ASSERT_EQ(big.wait_for(30s), std::future_status::ready)
      << "the waiter sleeps until the lease ends";
  EXPECT_TRUE(big.get());
}

TEST_P(SemaphoreContract, EightThreadsShareThreePermits) {
  Semaphore desks{store(), name("desks")};
  desks.try_set_permits(3).get();
  std::atomic<int> inside{0};
  std::atomic<int> faults{0};
  std::atomic<int> rounds{0};
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 8; ++i) {
      crew.emplace_back([&] {
        for (int round = 0; round < 25; ++round) {
          const auto held = desks.acquire().get();
          if (++inside > 3) ++faults;
          ++rounds;
          --inside;
        }
      });
    }
  }
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(rounds, 200);
  EXPECT_TRUE(desks.try_acquire(3, 10s).get());
}

TEST_P(SemaphoreContract, HoldIsRenewedAndFixedLeaseEnds) {
  Semaphore desks{store(), name("desks"), {.lease = 4s}};
  desks.try_set_permits(1).get();
  auto held = desks.acquire().get();
  const auto renewals = metrics().lock_renewals.load();
  while (held.valid() && metrics().lock_renewals.load() < renewals + 2)
    std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(desks.try_acquire(1).get());
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release().get().kind, Kind::released);
  Semaphore brief{store(), name("desks"), {.lease = 100ms, .watchdog = false}};
  auto lost = test::once_in_time([&] { return brief.acquire(); });
  EXPECT_TRUE(test::once_in_time([&] { return brief.try_acquire(1, 30s); }));
  EXPECT_EQ(lost.release().get().kind, Kind::not_held);
}

TEST_P(SemaphoreContract, PermitsHaveNames) {
  PermitSemaphore keys{store(), name("keys")};
  keys.try_set_permits(4).get();
  auto held = keys.try_acquire_many(3).get();
  ASSERT_EQ(held.size(), 3U);
  EXPECT_TRUE(keys.try_acquire_many(2).get().empty());
  const auto brief = keys.take(20s).get();
  ASSERT_TRUE(brief);
  const auto info = keys.info().get();
  ASSERT_EQ(info.holders.size(), 4U);
  EXPECT_EQ(info.holders[0].id, brief->text()) << "whose end comes first";
  EXPECT_GT(info.holders[0].data.pid, 0);
  EXPECT_TRUE(keys.update_lease(*brief, 100ms).get());
  EXPECT_TRUE(keys.try_acquire(30s).get());
  EXPECT_FALSE(keys.release(*brief).get());
  EXPECT_EQ(held[1].release().get().kind, Kind::released);
}

TEST_P(SemaphoreContract, KeyOfAnotherKindIsAnError) {
  const auto key = name("desks");
  store().run({"HSET", key, "field", "text"}).get();
  Semaphore desks{store(), key};
  try {
    (void)desks.acquire().get();
    FAIL() << "acquired of a hash";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type);
  }
}

TEST_P(SemaphoreContract, AnotherProgramIsKeptOutAndWoken) {
  if (!has_second()) GTEST_SKIP() << "an embedded store is alone";
  const auto other = second();
  const auto key = name("desks");
  Semaphore here{store(), key};
  Semaphore there{*other, key};
  here.try_set_permits(2).get();
  auto held = here.acquire(2).get();
  auto waiting =
      std::async(std::launch::async, [&] { return there.try_acquire(2, 1min).get().has_value(); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  held.release().get();
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace sluice
