/// How waiters wait, are woken, give up, and leave nothing behind.
#include <list>
#include <random>

#include "lock/virtual_lock.hpp"

namespace sluice {
namespace {

using Waiting = VirtualLock;

TEST_F(Waiting, ReleaseWakesTheWaiterAtOnce) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  Visitor visitor{mutex, 1h};
  EXPECT_TRUE(visitor.waits());
  held.release().get();
  EXPECT_TRUE(visitor.in());
}

TEST_F(Waiting, ReleaseBeforeTheSubscriptionIsNotMissed) {  // P02
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  line_.plan = [&](std::string_view call) {
    if (call == "listen") held.release().get();  // between the refusal and the subscription
    return Fault::none;
  };
  Visitor visitor{mutex, 1h};
  EXPECT_TRUE(visitor.in());
}

TEST_F(Waiting, ReleaseDuringTheSecondLookIsNotMissed) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  int looks = 0;
  line_.plan = [&](std::string_view call) {
    return call == "lock/mutex/acquire" && ++looks == 2 ? Fault::reply_late : Fault::none;
  };
  Visitor visitor{mutex, 1h};
  held.release().get();  // the visitor was refused, but does not know yet, and so does not sit idle
  EXPECT_TRUE(visitor.waits());
  line_.let_go();
  EXPECT_TRUE(visitor.in());
}

TEST_F(Waiting, EndOfTheLeaseWakesTheWaiter) {
  Mutex mutex{line_, "stock"};
  store_->run({"HSET", "stock", "a dead process:1", "1"}).get();
  store_->run({"PEXPIRE", "stock", "2000"}).get();
  Visitor visitor{mutex, 1h};
  clock_.advance(1999ms);
  EXPECT_TRUE(visitor.waits());
  clock_.advance(5ms);
  EXPECT_TRUE(visitor.in());
}

TEST_F(Waiting, PatienceEnds) {  // L02
  Mutex mutex{line_, "stock"};
  const auto held = mutex.acquire().get();
  const auto refused = metrics().lock_refused.load();
  Visitor visitor{mutex, 3s};
  clock_.advance(2999ms);
  EXPECT_TRUE(visitor.waits());
  clock_.advance(1ms);
  EXPECT_FALSE(visitor.waits());
  EXPECT_FALSE(visitor.in());
  EXPECT_EQ(metrics().lock_refused.load(), refused + 1);
}

TEST_F(Waiting, StopEndsTheWait) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  std::stop_source stop;
  Visitor visitor{mutex, 1h, stop.get_token()};
  EXPECT_TRUE(visitor.waits());
  stop.request_stop();
  EXPECT_FALSE(visitor.waits());
  EXPECT_FALSE(visitor.in());
  held.release().get();
  EXPECT_FALSE(exists("stock"));
}

TEST_F(Waiting, WaitersSubscribeOnceAndLeaveNoSubscription) {  // P01
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  {
    std::stop_source stop;
    std::list<Visitor> crowd;
    int subscriptions = 0;
    line_.plan = [&](std::string_view call) {
      if (call == "listen") ++subscriptions;
      return Fault::none;
    };
    for (int i = 0; i < 32; ++i) crowd.emplace_back(mutex, 1h, stop.get_token());
    heal();
    EXPECT_EQ(subscriptions, 1);
    EXPECT_EQ(store_->run({"PUBLISH", "redisson_lock__channel:{stock}", "0"}).get().as_integer(),
              1);
    stop.request_stop();
  }
  EXPECT_EQ(store_->run({"PUBLISH", "redisson_lock__channel:{stock}", "0"}).get().as_integer(), 0);
  EXPECT_EQ(held.release().get().kind, Kind::released);
}

TEST_F(Waiting, ReleaseWakesOneWaiterInTheOrderOfArrival) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  std::list<Visitor> crowd;
  for (int i = 0; i < 8; ++i) crowd.emplace_back(mutex, 1h);
  const auto looked = line_.executed("lock/mutex/acquire");
  held.release().get();
  int served = 0;
  for (auto& visitor : crowd) {
    ASSERT_TRUE(visitor.in()) << "visitor " << served;
    EXPECT_EQ(line_.executed("lock/mutex/acquire"), looked + static_cast<std::size_t>(++served));
    visitor.held.reset();
  }
}

TEST_F(Waiting, WokenWaiterThatFailsPassesTheCallOn) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  Visitor first{mutex, 1h};
  Visitor second{mutex, 1h};
  fail_next("lock/mutex/acquire", Fault::refused);
  held.release().get();
  EXPECT_TRUE(first.failed());
  EXPECT_TRUE(second.in());
}

TEST_F(Waiting, FailedSubscriptionFailsTheWaitersAndNobodyAfterThem) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  fail_next("listen", Fault::refused);
  Visitor unlucky{mutex, 1h};
  EXPECT_TRUE(unlucky.failed());
  Visitor lucky{mutex, 1h};
  held.release().get();
  EXPECT_TRUE(lucky.in());
}

TEST_F(Waiting, RandomCancellationLeavesNoRenewedKey) {  // W04
  std::mt19937 dice{20260101};
  for (int round = 0; round < 1000; ++round) {
    Mutex mutex{line_, "stock", {.lease = 300ms}};
    std::stop_source stop;
    auto held = dice() % 2 ? mutex.try_acquire().get() : std::nullopt;
    {
      Visitor visitor{mutex, 1h, stop.get_token()};
      const auto cut = std::chrono::milliseconds{dice() % 400};
      const bool release_first = dice() % 2;
      clock_.advance(cut / 2);
      if (release_first) held.reset();
      stop.request_stop();
      if (!release_first) held.reset();
      clock_.advance(cut / 2);
      ASSERT_FALSE(visitor.waits());
    }
    clock_.advance(300ms);
    ASSERT_FALSE(exists("stock")) << "round " << round;
  }
  EXPECT_EQ(clock_.pending_timers(), 0U);
}

}  // namespace
}  // namespace sluice
