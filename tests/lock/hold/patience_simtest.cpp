// A server that is away for a while: callers wait it out, and holds survive it.
#include "lock/virtual_lock.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/rate_limiter.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_mutex.hpp"

namespace sluice {
namespace {

class LockPatience : public VirtualLock {
 protected:
  /// From now on no call gets to the server.
  void go_away() {
    line_.plan = [](std::string_view) { return Fault::refused; };
  }
  /// In steps, as a program that is there all the time.
  void pass(std::chrono::milliseconds time) {
    for (auto passed = 0ms; passed < time; passed += 50ms) clock_.advance(50ms);
  }
  /// Runs `task` in the background.
  template <class T>
  void start(Task<T> task, std::optional<T>& into) {
    const auto run = [](Task<T> what, std::optional<T>& result, bool& failed) -> Task<void> {
      try {
        result = co_await what;
      } catch (const Error&) {
        failed = true;
      }
    };
    spawn(run(std::move(task), into, failed_));
  }

  bool failed_ = false;
};

/// The reply of the first is lost, and the server is away then, with no connection that is lost.
TEST_F(LockPatience, WhatAnAcquireLeftIsTakenBackAfterTheOutage) {
  Mutex mutex{line_, "stock"};
  FairMutex fair{line_, "fair"};
  SharedMutex shared{line_, "shared"};
  MultiLock both{line_, {"one", "two"}};
  Semaphore desks{line_, "desks"};
  PermitSemaphore rooms{line_, "rooms"};
  desks.try_set_permits(1).get();
  rooms.try_set_permits(1).get();
  const auto is_left_alone = [&](auto acquire) {
    line_.plan = [first = true](std::string_view) mutable {
      return std::exchange(first, false) ? Fault::cut_off : Fault::refused;
    };
    EXPECT_EQ(error_of(acquire()), Errc::connection);
    pass(3s);
    heal();
    pass(5s);
    EXPECT_TRUE(acquire().get());
  };
  is_left_alone([&] { return mutex.try_acquire(); });
  is_left_alone([&] { return fair.try_acquire(); });
  is_left_alone([&] { return shared.try_acquire(); });
  is_left_alone([&] { return shared.try_acquire_shared(); });
  is_left_alone([&] { return both.try_acquire(); });
  is_left_alone([&] { return desks.try_acquire(); });
  is_left_alone([&] { return rooms.try_acquire(); });
}

/// A server that refuses for a while: busy, without replicas, paused for too long.
TEST_F(LockPatience, AReleaseThatWasRefusedIsAskedForAgain) {
  Mutex mutex{line_, "stock"};
  FairMutex fair{line_, "fair"};
  SharedMutex shared{line_, "shared"};
  MultiLock both{line_, {"one", "two"}};
  Semaphore desks{line_, "desks"};
  desks.try_set_permits(1).get();
  const auto is_free_again = [&](auto acquire) {
    {
      const auto held = acquire().get();
      ASSERT_TRUE(held);
      go_away();
    }
    pass(3s);
    heal();
    pass(5s);
    EXPECT_TRUE(acquire().get());
  };
  is_free_again([&] { return mutex.try_acquire(); });
  is_free_again([&] { return fair.try_acquire(); });
  is_free_again([&] { return shared.try_acquire(); });
  is_free_again([&] { return shared.try_acquire_shared(); });
  is_free_again([&] { return both.try_acquire(); });
  is_free_again([&] { return desks.try_acquire(); });
}

TEST_F(LockPatience, K30_AcquireWithoutADeadlineOutlivesAnOutage) {
  Mutex mutex{line_, "stock"};
  FairMutex fair{line_, "fair"};
  MultiLock both{line_, {"one", "two"}};
  Semaphore desks{line_, "desks"};
  RateLimiter rate{line_, "rate", {.rate = 1}};
  desks.try_set_permits(1).get();
  go_away();
  std::optional<Held> held;
  std::optional<Held> fair_held;
  std::optional<MultiHeld> both_held;
  std::optional<Held> desk;
  std::optional<RateGrant> grant;
  start(mutex.acquire(), held);
  start(fair.acquire(), fair_held);
  start(both.acquire(), both_held);
  start(desks.acquire(), desk);
  start(rate.acquire(), grant);
  pass(20s);
  EXPECT_FALSE(held || fair_held || both_held || desk || grant || failed_);
  heal();
  pass(2s);
  EXPECT_TRUE(held && fair_held && both_held && desk && grant);
  EXPECT_FALSE(failed_);
  held.reset();
  fair_held.reset();
  both_held.reset();
  EXPECT_FALSE(exists("stock"));
}

TEST_F(LockPatience, K30_WhatWasAcquiredAfterAnOutageIsAHold) {
  Semaphore desks{line_, "desks"};
  PermitSemaphore beds{line_, "beds"};
  desks.try_set_permits(2).get();
  beds.try_set_permits(2).get();
  go_away();
  std::optional<Held> desk;
  std::optional<std::vector<HeldPermit>> both;
  std::optional<std::optional<PermitId>> taken;
  start(desks.acquire(), desk);
  start(beds.try_acquire_many(1, 1h), both);
  start(beds.take(5min, 1h), taken);
  pass(5s);
  heal();
  pass(2min);
  ASSERT_TRUE(desk && both && taken && !both->empty() && *taken);
  EXPECT_TRUE(desk->valid());
  EXPECT_TRUE(both->front().valid());
  EXPECT_EQ(desk->release().get().kind, Kind::released);
  EXPECT_EQ(both->front().release().get().kind, Kind::released);
  EXPECT_TRUE(beds.release(**taken).get());
  EXPECT_EQ(desks.available().get(), 2);
  EXPECT_EQ(beds.available().get(), 2);
}

TEST_F(LockPatience, K30_WithADeadlineUntilTheDeadlineAndOthersWaitOn) {
  Mutex mutex{line_, "stock"};
  std::optional<std::optional<Held>> brief;
  std::optional<Held> patient;
  std::optional<Held> other;
  go_away();
  start(mutex.try_acquire(5s), brief);
  start(mutex.acquire(), patient);
  start(mutex.acquire(), other);
  pass(4s);
  EXPECT_FALSE(failed_);
  pass(2s);
  EXPECT_TRUE(failed_) << "not `held by another`: nobody knows";
  EXPECT_FALSE(patient || other);
  heal();
  pass(2s);
  ASSERT_TRUE(patient || other);
  (patient ? patient : other).reset();
  pass(1s);
  EXPECT_TRUE(patient || other);
}

TEST_F(LockPatience, K30_WaitersInTheQueueOutliveAnOutage) {
  Mutex mutex{line_, "stock"};
  auto held = Mutex{far_, "stock"}.acquire().get();
  std::optional<Held> next;
  start(mutex.acquire(), next);
  pass(1s);
  go_away();
  pass(60s);
  held.release().get();  // its message comes, or the next look finds it
  pass(1s);
  heal();
  pass(3s);
  EXPECT_TRUE(next);
  EXPECT_FALSE(failed_);
}

TEST_F(LockPatience, K30_AnOutageOf20sLosesNoHoldOf30s) {
  for (auto begins = 0ms; begins < 10s; begins += 300ms) {
    Mutex mutex{line_, "stock", {.lease = 30s}};
    auto held = mutex.acquire().get();
    pass(begins);
    go_away();
    pass(20s);
    ASSERT_TRUE(held.valid()) << begins.count();
    heal();
    pass(2s);
    ASSERT_TRUE(held.valid()) << begins.count();
    pass(20s);
    ASSERT_TRUE(held.valid()) << begins.count() << ": it was renewed";
    held.release().get();
  }
}

}  // namespace
}  // namespace sluice
