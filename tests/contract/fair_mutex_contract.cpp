// What FairMutex promises on every Store, in real time.
#include <algorithm>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "contract/stores.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/lock_info.hpp"
#include "sluice/store.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Kind = ReleaseOutcome::Kind;

class FairMutexContract : public test::StoreContract {
 protected:
  static void await_waiters(FairMutex& mutex, std::size_t many) {
    const auto patience = std::chrono::steady_clock::now() + 30s;
    while (mutex.info().get().waiters.size() != many) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "not " << many << " wait";
      std::this_thread::yield();
    }
  }
};
SLUICE_EVERY_STORE(FairMutexContract);
SLUICE_SHARDED_STORE(FairMutexContract);
SLUICE_WATCHED_STORE(FairMutexContract);

TEST_P(FairMutexContract, LetsOneIn) {
  FairMutex mutex{store(), name("lock")};
  auto held = mutex.try_acquire().get();
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->valid());
  EXPECT_FALSE(mutex.try_acquire().get());
  EXPECT_FALSE(mutex.try_acquire(20ms).get());
  EXPECT_EQ(held->release().get().kind, Kind::released);
  EXPECT_GT(mutex.acquire().get().token(), FencingToken{1});
}

TEST_P(FairMutexContract, WaitersEnterInTheOrderOfArrival) {
  FairMutex mutex{store(), name("lock")};
  auto held = mutex.acquire().get();
  std::vector<int> order;  // no lock: the FairMutex protects it
  {
    std::vector<std::jthread> crew;
    for (int number = 0; number < 8; ++number) {
      crew.emplace_back([&, number] {
        const std::scoped_lock lock{mutex};
        order.push_back(number);
      });
      await_waiters(mutex, crew.size());
    }
    held.release().get();
  }
  EXPECT_EQ(order.size(), 8U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_P(FairMutexContract, EightThreadsCountExactly) {
  FairMutex mutex{store(), name("lock")};
  int counter = 0;  // no atomic: the lock protects it
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 8; ++i) {
      crew.emplace_back([&] {
        for (int round = 0; round < 25; ++round) {
          const std::scoped_lock lock{mutex};
          ++counter;
        }
      });
    }
  }
  EXPECT_EQ(counter, 200);
  EXPECT_TRUE(mutex.info().get().waiters.empty());
}

TEST_P(FairMutexContract, HandedOverHoldIsRenewedAndEndsWithItsRelease) {
  FairMutex mutex{store(), name("lock"), {.lease = 4s}};
  auto first = mutex.acquire().get();
  auto waiting = std::async(std::launch::async, [&] { return mutex.acquire().get(); });
  await_waiters(mutex, 1);
  first.release().get();
  auto held = waiting.get();
  EXPECT_TRUE(is_renewed(name("lock")));
  EXPECT_FALSE(mutex.try_acquire().get());
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release().get().kind, Kind::released);
}

TEST_P(FairMutexContract, FixedLeaseEndsAndTheFirstGetsIn) {
  FairMutex mutex{store(), name("lock"), {.lease = 100ms, .watchdog = false}};
  auto held = test::once_in_time([&] { return mutex.acquire(); });
  std::promise<LostCause> told;
  held.on_lost([&](LostCause cause) { told.set_value(cause); });
  EXPECT_TRUE(test::once_in_time([&] { return mutex.try_acquire(30s); }));
  EXPECT_EQ(told.get_future().get(), LostCause::expired);
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
}

TEST_P(FairMutexContract, OwnerEntersAgain) {
  FairMutex mutex{store(), name("lock")};
  const Owner owner;
  auto outer = mutex.acquire(owner).get();
  auto inner = mutex.try_acquire(owner).get();
  ASSERT_TRUE(inner);
  EXPECT_EQ(mutex.info().get().holders.at(0).entries, 2U);
  EXPECT_EQ(inner->release().get(), (ReleaseOutcome{Kind::still_held, 1}));
  EXPECT_EQ(outer.release().get().kind, Kind::released);
  EXPECT_TRUE(mutex.info().get().holders.empty());
}

TEST_P(FairMutexContract, ForcedReleaseIsNoticed) {
  FairMutex mutex{store(), name("lock"), {.lease = 4s}};
  auto held = mutex.acquire().get();
  std::promise<LostCause> told;
  held.on_lost([&](LostCause cause) { told.set_value(cause); });
  EXPECT_TRUE(mutex.force_release().get());
  EXPECT_EQ(told.get_future().get(), LostCause::taken);
  EXPECT_FALSE(held.valid());
}

TEST_P(FairMutexContract, KeyOfAnotherKindIsAnError) {
  const auto key = name("lock");
  store().run({"SET", key, "text"}).get();
  FairMutex mutex{store(), key};
  try {
    (void)mutex.acquire().get();
    FAIL() << "acquired a string";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type);
  }
}

TEST_P(FairMutexContract, AnotherProgramHasItsTurn) {
  if (!has_second()) GTEST_SKIP() << "an embedded store is alone";
  const auto other = second();
  const auto key = name("lock");
  FairMutex here{store(), key};
  FairMutex there{*other, key};
  auto held = here.acquire().get();
  EXPECT_FALSE(there.try_acquire().get());
  auto waiting =
      std::async(std::launch::async, [&] { return there.try_acquire(1min).get().has_value(); });
  await_waiters(here, 1);
  EXPECT_FALSE(here.try_acquire().get());
  held.release().get();
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace sluice
