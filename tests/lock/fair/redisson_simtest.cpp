/// Redisson's waiters among ours, by virtual time: what they do to the queue, and what a dead one
/// costs.
#include "lock/fair/virtual_fair.hpp"

namespace sluice {
namespace {

using FairWithRedisson = VirtualFair;

TEST_F(FairWithRedisson, F05_LiveWaiterOutlivesRedissonsPatience) {
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  Visitor visitor{there.mutex, 24h};
  const auto waits = queue();
  ASSERT_EQ(waits.size(), 1U);
  for (auto waited = 0s; waited < 30min; waited += 10s) {
    clock_.advance(10s);
    EXPECT_EQ(java_acquire(java_, {}, false), Value::integer(1));  // and cleans the queue
    ASSERT_EQ(queue(), waits) << "after " << waited.count() << " s";
  }
  EXPECT_LE(there.line.executed("lock/fair/acquire"), 1U + 3660) << "two looks a second";
  held.release().get();
  EXPECT_TRUE(visitor.in());
}

TEST_F(FairWithRedisson, QueueOfOursEndsAMinuteAfterALookAndNotBeforeOneOfRedissons) {
  constexpr std::int64_t five_minutes = 300'000;
  FairProcess here{*store_};
  auto held = here.mutex.acquire().get();
  Visitor visitor{here.mutex, 24h};
  const auto kept = [&](std::string_view key) { return store_->run({"PTTL", key}).get(); };
  EXPECT_LE(kept("sluice_lock_tickets:{stock}").as_integer(), 60'000);
  EXPECT_EQ(kept("redisson_lock_queue:{stock}"), kept("sluice_lock_tickets:{stock}"));
  EXPECT_FALSE(java_acquire(java_).is_null());
  clock_.advance(2s);  // a look
  EXPECT_GT(kept("sluice_lock_tickets:{stock}").as_integer(), 2 * five_minutes);
  EXPECT_EQ(kept("redisson_lock_queue:{stock}"), kept("sluice_lock_tickets:{stock}"));
  EXPECT_EQ(kept("redisson_lock_timeout:{stock}"), kept("sluice_lock_tickets:{stock}"));
}

TEST_F(FairWithRedisson, F05_HoldsOfRedissonAheadDoNotDropAWaiter) {
  FairProcess here{*store_};
  EXPECT_TRUE(java_acquire("6a7661a0-0000-4000-8000-000000000000:0").is_null());
  for (int i = 1; i <= 5; ++i)
    EXPECT_FALSE(
        java_acquire("6a7661a0-0000-4000-8000-000000000000:" + std::to_string(i)).is_null());
  Visitor visitor{here.mutex, 24h};
  const std::string ours = queue().back();
  for (int i = 0; i <= 5; ++i) {
    const std::string holder = "6a7661a0-0000-4000-8000-000000000000:" + std::to_string(i);
    for (int renewal = 0; renewal < 6; ++renewal) {
      clock_.advance(10s);
      store_->run({"PEXPIRE", "stock", "30000"}).get();
    }
    ASSERT_EQ(queue().back(), ours);
    EXPECT_TRUE(visitor.waits());
    java_release(holder);
    if (i < 5) {
      EXPECT_TRUE(
          java_acquire("6a7661a0-0000-4000-8000-000000000000:" + std::to_string(i + 1)).is_null());
    }
  }
  EXPECT_TRUE(visitor.in());
}

TEST_F(FairWithRedisson, ClockThatIsAheadDropsUsAndWeReturnToTheFrontInOurOrder) {
  FairProcess here{*store_};
  auto held = here.mutex.acquire().get();
  Visitor first{here.mutex, 24h};
  clock_.advance(1ms);
  Visitor second{here.mutex, 24h};
  const auto before = queue();
  EXPECT_FALSE(java_acquire(java_, 20min).is_null());  // takes both for dead, and stands there
  EXPECT_EQ(queue(), std::vector{java_});
  clock_.advance(31s);
  const std::vector<std::string> after{before[0], before[1], java_};
  EXPECT_EQ(queue(), after);
  held.release().get();
  ASSERT_TRUE(first.in());
  first.held->release().get();
  EXPECT_TRUE(second.in());
}

TEST_F(FairWithRedisson, P06_ReleaseTellsTheFirstWhoeverItIs) {
  FairProcess here{*store_};
  auto held = here.mutex.acquire().get();
  int heard = 0;
  const auto ear = java_ear(java_, heard);
  EXPECT_FALSE(java_acquire(java_).is_null());
  Visitor ours{here.mutex, 1h};
  held.release().get();
  EXPECT_EQ(heard, 1);
  EXPECT_FALSE(ours.in());
  EXPECT_FALSE(here.mutex.try_acquire().get()) << "it is the turn of Redisson";
  EXPECT_EQ(heard, 1) << "it has been told";
  EXPECT_TRUE(java_acquire(java_).is_null());
  EXPECT_FALSE(ours.in());
  java_release(java_);
  EXPECT_TRUE(ours.in()) << "it heard on its own channel";
  expect_nobody_waits();
}

TEST_F(FairWithRedisson, ForeignChannelIsSubscribedOnlyBehindRedisson) {
  const auto channels = [&] {
    return store_->run({"PUBSUB", "CHANNELS", "redisson*"}).get().as_items().size();
  };
  FairProcess here{*store_};
  auto held = here.mutex.acquire().get();
  Visitor before{here.mutex, 1h};
  EXPECT_EQ(channels(), 0U);
  EXPECT_FALSE(java_acquire(java_).is_null());
  Visitor behind{here.mutex, 1h};
  EXPECT_EQ(channels(), 2U) << "and another, to be told from Redisson";
}

TEST_F(FairWithRedisson, DeadHeadCostsTwoSeconds) {
  for (const bool listens : {false, true}) {
    int heard = 0;
    Listener ear;
    if (listens) ear = java_ear(java_, heard);
    FairProcess here{*store_};
    auto held = here.mutex.acquire().get();
    EXPECT_FALSE(java_acquire(java_).is_null());
    Visitor first{here.mutex, 1h};
    Visitor second{here.mutex, 1h};
    const auto asked = here.line.executed("lock/fair/acquire");
    held.release().get();
    EXPECT_EQ(heard, listens);
    clock_.advance(1400ms);
    EXPECT_TRUE(first.waits()) << "it may still come";
    clock_.advance(600ms);
    EXPECT_TRUE(first.in());
    EXPECT_TRUE(second.waits());
    EXPECT_LE(here.line.executed("lock/fair/acquire"), asked + 10);
    EXPECT_GE(patience_with(queue().front()), patience - 2s);
    EXPECT_LE(patience_with(queue().front()), patience + 30s);
    first.held->release().get();
    second.held.reset();
    expect_nobody_waits();
  }
}

TEST_F(FairWithRedisson, DeadOnesThatOthersReleaseToCostTwoSecondsToo) {
  FairProcess here{*store_};
  EXPECT_TRUE(java_acquire(java_).is_null());
  EXPECT_FALSE(java_acquire(other_java_).is_null());
  Visitor visitor{here.mutex, 1h};
  java_release(java_);  // tells the other one alone, which is dead
  clock_.advance(2s + 10ms);
  EXPECT_TRUE(visitor.in());
}

TEST_F(FairWithRedisson, DeadOneOfOursThatRedissonReleasesToCostsTwoSeconds) {
  FairProcess here{*store_};
  const auto silent = silent_inbox("sluice:inbox:silent");
  for (const auto* inbox : {"sluice:inbox:of-nobody", "sluice:inbox:silent"}) {
    EXPECT_TRUE(java_acquire(java_).is_null());
    queue_up("dead:1", inbox);
    Visitor visitor{here.mutex, 1h};
    java_release(java_);
    clock_.advance(2s + 10ms);
    EXPECT_TRUE(visitor.in()) << inbox;
    visitor.held->release().get();
  }
}

TEST_F(FairWithRedisson, K34_JavaBehindADeadOneOfOursGetsInWhenOneOfOursCallsOrAtItsDeadline) {
  for (const bool calls : {true, false}) {
    EXPECT_TRUE(java_acquire(java_).is_null());
    queue_up("dead:1", "sluice:inbox:of-nobody");
    EXPECT_FALSE(java_acquire(other_java_).is_null());
    java_release(java_);  // tells the dead one alone
    for (auto waited = 0s; waited < 4min; waited += 10s) {
      clock_.advance(10s);
      ASSERT_FALSE(java_acquire(other_java_).is_null()) << "as docs/fair_mutex.md says";
    }
    FairProcess here{*store_};
    if (calls) {
      EXPECT_FALSE(here.mutex.try_acquire().get());
    }
    clock_.advance(calls ? 2s : 2min);
    EXPECT_TRUE(java_acquire(other_java_).is_null()) << calls;
    java_release(other_java_);
  }
}

TEST_F(FairWithRedisson, LiveOneThatWaitedLongIsNotDroppedByOurRelease) {
  FairProcess here{*store_};
  auto held = here.mutex.acquire().get();
  int heard = 0;
  const auto ear = java_ear(java_, heard);
  EXPECT_FALSE(java_acquire(java_).is_null());
  Visitor visitor{here.mutex, 1h};
  clock_.advance(10min);  // its sleep is longer than Redisson's patience
  held.release().get();
  EXPECT_EQ(heard, 1);
  EXPECT_FALSE(visitor.in());
  EXPECT_TRUE(java_acquire(java_).is_null());
  java_release(java_);
  EXPECT_TRUE(visitor.in());
}

TEST_F(FairWithRedisson, WaitersWhoGiveUpAmongEachOtherLeaveNothing) {
  FairProcess here{*store_};
  auto held = here.mutex.acquire().get();
  EXPECT_FALSE(java_acquire(java_).is_null());
  Visitor visitor{here.mutex, 2s};
  EXPECT_FALSE(java_acquire(other_java_).is_null());
  EXPECT_EQ(java_give_up(java_), Value::integer(1));
  clock_.advance(2s);
  EXPECT_FALSE(visitor.waits());
  EXPECT_EQ(queue(), std::vector{other_java_});
  EXPECT_GT(patience_with(other_java_), patience - 2s);
  EXPECT_LE(patience_with(other_java_), patience + 30s);
  java_give_up(other_java_);
  expect_nobody_waits();
}

}  // namespace
}  // namespace sluice
