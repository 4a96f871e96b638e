/// How waiters wait, are woken, give up, and leave nothing behind.
#include <functional>
#include <list>
#include <random>

#include "lock/virtual_lock.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/latch.hpp"
#include "sluice/semaphore.hpp"

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

TEST_F(Waiting, P02_ReleaseBeforeTheSubscriptionIsNotMissed) {
  Mutex elsewhere{far_, "stock"};
  Mutex mutex{line_, "stock"};
  auto held = elsewhere.acquire().get();
  line_.plan = [&](std::string_view call) {
    if (call == "listen") held.release().get();  // between the refusal and the subscription
    return Fault::none;
  };
  Visitor visitor{mutex, 1h};
  EXPECT_TRUE(visitor.in());
}

TEST_F(Waiting, ReleaseDuringTheSecondLookIsNotMissed) {
  Mutex elsewhere{far_, "stock"};
  Mutex mutex{line_, "stock"};
  auto held = elsewhere.acquire().get();
  int looks = 0;
  line_.plan = [&](std::string_view call) {
    return call == "lock/mutex/acquire" && ++looks == 2 ? Fault::reply_late : Fault::none;
  };
  Visitor visitor{mutex, 1h};
  held.release().get();  // the visitor is in the queue, but does not know it yet
  EXPECT_TRUE(visitor.waits());
  line_.let_go();
  EXPECT_TRUE(visitor.in());
}

TEST_F(Waiting, AGrantThatTheServerForgotIsNoGrant) {
  Mutex elsewhere{far_, "stock"};
  Mutex mutex{line_, "stock"};
  auto held = elsewhere.acquire().get();
  Visitor visitor{mutex, 1h};
  line_.plan = [](std::string_view call) {
    return call == "lock/mutex/acquire" ? Fault::request_late : Fault::none;
  };
  clock_.advance(31s);  // it asks again
  ASSERT_TRUE(visitor.waits());
  held.release().get();  // the grant is there before the answer
  store_->run({"FLUSHALL"}).get();
  clock_.advance(5ms);
  auto other = elsewhere.acquire().get();
  heal();
  line_.let_go();
  EXPECT_TRUE(visitor.waits())
      << "the answer is later than the grant, and says that another has it";
  const auto token = other.token();
  other.release().get();
  ASSERT_TRUE(visitor.in());
  EXPECT_GT(visitor.held->token(), token);
}

TEST_F(Waiting, ALateWordOfItsGrantEndsNoHoldBeforeItsRelease) {
  Mutex elsewhere{far_, "stock"};
  Mutex mutex{line_, "stock"};
  auto held = elsewhere.acquire().get();
  Visitor visitor{mutex, 1h};
  line_.hold_messages();
  held.release().get();
  ASSERT_TRUE(visitor.waits()) << "the word of the grant is on its way";
  clock_.advance(10s);
  ASSERT_TRUE(visitor.in()) << "it has looked by itself";
  bool has_come = false;
  line_.plan = [&](std::string_view call) {
    if (call == "lock/mutex/release" && !std::exchange(has_come, true)) line_.let_messages_go();
    return Fault::none;
  };
  EXPECT_EQ(visitor.held->release().get().kind, Kind::released);
  EXPECT_TRUE(has_come);
  heal();
  EXPECT_FALSE(exists("stock"));
}

TEST_F(Waiting, APlaceThatCouldNotBeGivenUpIsInNobodysWay) {
  Mutex elsewhere{far_, "stock"};
  Mutex mutex{line_, "stock"};
  auto held = elsewhere.acquire().get();
  {
    Visitor impatient{mutex, 3s};
    fail_all("lock/mutex/release", Fault::refused);
    clock_.advance(3s);
    EXPECT_FALSE(impatient.waits());
  }
  heal();
  Visitor visitor{mutex, 1h};
  held.release().get();  // to the place of the impatient one, which is first in the queue
  EXPECT_TRUE(visitor.in());
}

TEST_F(Waiting, WhoHasLookedIsToldToLookAgain) {
  test::FaultyStore third{*store_};
  Mutex mutex{line_, "stock"}, elsewhere{far_, "stock"}, there{third, "stock"};
  auto held = mutex.acquire().get();
  Visitor first{elsewhere, 1h}, second{there, 1h}, next{elsewhere, 1h}, last{mutex, 1h};
  held.release().get();
  ASSERT_TRUE(first.in());
  clock_.advance(2500ms);  // those who were told have looked, and seen that it was taken up
  const auto stand_still = [](test::FaultyStore& line) {
    line.hold_messages();
    line.plan = [](std::string_view) { return Fault::request_late; };
  };
  stand_still(third);
  first.held->release().get();
  stand_still(far_);
  ASSERT_TRUE(second.waits());
  clock_.advance(4s);
  EXPECT_TRUE(last.in()) << "the others stand still";
  for (auto* const line : {&third, &far_}) {  // and go on
    line->plan = [](std::string_view) { return Fault::none; };
    line->let_messages_go();
    line->let_go();
  }
}

TEST_F(Waiting, EndOfTheLeaseWakesTheWaiter) {
  Mutex mutex{line_, "stock"};
  store_->run({"HSET", "stock", "dead0000-0000-4000-8000-000000000000:1", "1"}).get();
  store_->run({"PEXPIRE", "stock", "2000"}).get();
  Visitor visitor{mutex, 1h};
  clock_.advance(1999ms);
  EXPECT_TRUE(visitor.waits());
  clock_.advance(5ms);
  EXPECT_TRUE(visitor.in());
}

TEST_F(Waiting, L02_PatienceEnds) {
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

TEST_F(Waiting, PatienceWithoutEndDoesNotEnd) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  Visitor visitor{mutex, std::chrono::milliseconds::max()};
  clock_.advance(24h);
  EXPECT_TRUE(visitor.waits());
  held.release().get();
  EXPECT_TRUE(visitor.in());
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

TEST_F(Waiting, P01_WaitersSubscribeOnceAndLeaveNoSubscription) {
  Mutex elsewhere{far_, "stock"};
  auto held = elsewhere.acquire().get();
  const auto channels = [&] { return store_->run({"PUBSUB", "CHANNELS"}).get().as_items().size(); };
  {
    Mutex mutex{line_, "stock"};
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
    EXPECT_EQ(channels(), 1U);
    stop.request_stop();
    EXPECT_FALSE(exists("sluice_lock_queue:{stock}"));
  }
  EXPECT_EQ(channels(), 0U);
  EXPECT_EQ(held.release().get().kind, Kind::released);
}

TEST_F(Waiting, P04_AThousandNamesWaitWithOneSubscription) {
  std::list<Mutex> theirs;
  std::list<Mutex> ours;
  std::vector<Held> holds;
  std::list<Visitor> crowd;
  int subscriptions = 0;
  line_.plan = [&](std::string_view call) {
    if (call == "listen") ++subscriptions;
    return Fault::none;
  };
  for (int i = 0; i < 1000; ++i) {
    holds.push_back(theirs.emplace_back(far_, "name " + std::to_string(i)).acquire().get());
    crowd.emplace_back(ours.emplace_back(line_, "name " + std::to_string(i)), 1h);
  }
  EXPECT_EQ(subscriptions, 1);
  for (auto& held : holds) held.release().get();
  for (const auto& visitor : crowd) EXPECT_TRUE(visitor.in());
}

/// A hold of this process ends from outside: whatever the options, a waiter is in within 2 s.
TEST_F(Waiting, CO06_EndFromOutsideIsNoticedWithAndWithoutRenewals) {
  const std::function<void()> ways[] = {
      [&] {
        store_->run({"DEL", "stock"}).get();
      },
      [&] { store_->run({"FLUSHALL"}).get(); },
      [&] {
        store_->run({"PEXPIRE", "stock", "0"}).get();
      },
      [&] { EXPECT_TRUE(Mutex(far_, "stock").force_release().get()); },
  };
  for (const bool watched : {true, false}) {
    for (const auto& end : ways) {
      for (const auto comes : {-1000ms, 0ms, 100ms, 7000ms}) {  // before the end, or after it
        Mutex mutex{line_, "stock", {.lease = 30s, .watchdog = watched}};
        const auto held = mutex.acquire().get();
        std::optional<Visitor> visitor;
        if (comes < 0ms) {
          visitor.emplace(mutex, 1h);
          clock_.advance(-comes);
        }
        end();
        if (comes >= 0ms) {
          clock_.advance(comes);
          if (!watched) EXPECT_TRUE(mutex.try_acquire().get()) << "nobody holds it";
          visitor.emplace(mutex, 1h);
        }
        clock_.advance(2s);
        EXPECT_TRUE(visitor->in())
            << "watched " << watched << ", way " << &end - ways << ", " << comes.count();
      }
    }
  }
}

/// In what order callers get in whose questions after `begin` are answered when the test lets them.
template <class Ask>
std::vector<int> order_of(test::FaultyStore& line, int callers, Ask acquire,
                          const std::function<void()>& begin) {
  std::vector<int> order;
  const auto visit = [&](int number) -> Task<void> {
    auto acquiring = acquire();
    auto held = co_await acquiring;
    order.push_back(number);
    auto releasing = held.release();
    co_await releasing;
  };
  for (int i = 0; i < callers; ++i) spawn(visit(i));
  line.plan = [](std::string_view call) {
    return call.ends_with("/acquire") ? Fault::reply_late : Fault::none;
  };
  begin();
  for (int round = 0; round < callers; ++round) line.let_go();
  line.plan = [](std::string_view) { return Fault::none; };
  line.let_go();
  return order;
}

TEST_F(Waiting, CO02_ConfirmationsOfAThousandAreAskedInTheOrderOfTheQueue) {
  constexpr int callers = 1000;
  Semaphore semaphore{line_, "desks", {.watchdog = false}};
  semaphore.try_set_permits(1).get();
  auto held = semaphore.acquire().get();
  const auto order = order_of(
      line_, callers, [&] { return semaphore.acquire(); },
      [&] { semaphore.add_permits(callers).get(); });
  EXPECT_EQ(order.size(), std::size_t{callers});
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(Waiting, CO02_HundredsThatLostTheirPlacesReturnInTheirOrder) {
  constexpr int callers = 500;
  FairMutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  const auto order = order_of(
      line_, callers, [&] { return mutex.acquire(); },
      [&] {
        store_->run({"FLUSHALL"}).get();
        const Value channels = store_->run({"PUBSUB", "CHANNELS", "sluice:inbox:*"}).get();
        store_->run({"PUBLISH", channels.as_items().at(0).as_text(), "gone"}).get();
      });
  EXPECT_EQ(order.size(), std::size_t{callers});
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(Waiting, K30_QuestionThatNoServerHeardIsAskedAgain) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  Visitor first{mutex, 1h};
  Visitor second{mutex, 1h};
  fail_next("lock/mutex/pass", Fault::refused);
  held.release().get();
  EXPECT_TRUE(first.waits());
  clock_.advance(100ms);
  ASSERT_TRUE(first.in());
  first.held.reset();
  EXPECT_TRUE(second.in());
}

TEST_F(Waiting, K30_FailedSubscriptionIsTriedAgain) {
  Mutex elsewhere{far_, "stock"};
  Mutex mutex{line_, "stock"};
  auto held = elsewhere.acquire().get();
  fail_next("listen", Fault::refused);
  Visitor unlucky{mutex, 1h};
  EXPECT_TRUE(unlucky.waits());
  clock_.advance(100ms);
  held.release().get();
  EXPECT_TRUE(unlucky.in());
}

TEST_F(Waiting, SubscriptionThatIsNotConfirmedHoldsUpNoDeadline) {
  const std::string java = "5ae5a5d5-0c0a-4a4a-9f9f-0123456789ab:17:write";
  store_->run({"HSET", "foreign", "mode", "write", java, "1"}).get();
  store_->run({"PEXPIRE", "foreign", "60000"}).get();
  auto held = Mutex{far_, "stock"}.acquire().get();
  Semaphore desks{line_, "desks"};
  desks.try_set_permits(1).get();
  auto desk = Semaphore{far_, "desks"}.acquire().get();
  Latch latch{line_, "import"};
  latch.try_set_count(1).get();
  Mutex mutex{line_, "stock"};
  SharedMutex foreign{line_, "foreign"};
  const Visitor opens_the_inbox{mutex, 1s};
  fail_all("listen", Fault::request_late);
  const Visitor late{foreign, 1s};
  std::optional<bool> came_to_desks;
  std::optional<bool> came_through_latch;
  const auto visit_desks = [&]() -> Task<void> {
    auto acquiring = desks.try_acquire(1, 1s);
    const auto got = co_await acquiring;
    came_to_desks = got.has_value();
  };
  const auto visit_latch = [&]() -> Task<void> {
    auto waiting = latch.try_wait(1s);
    came_through_latch = co_await waiting;
  };
  spawn(visit_desks());
  spawn(visit_latch());
  clock_.advance(900ms);
  EXPECT_TRUE(late.waits() && !came_to_desks && !came_through_latch);
  clock_.advance(200ms);
  EXPECT_FALSE(late.waits());
  EXPECT_FALSE(late.in() || late.failed());
  EXPECT_EQ(came_to_desks, false);
  EXPECT_EQ(came_through_latch, false);
  heal();
  line_.let_go();
  store_->run({"PUBLISH", "redisson_rwlock:{foreign}", "0"}).get();  // to nobody
}

TEST_F(Waiting, W04_RandomCancellationLeavesNoRenewedKey) {
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
  clock_.advance(26h);
  EXPECT_EQ(clock_.pending_timers(), 0U) << "nor a key that ends";
}

}  // namespace
}  // namespace sluice
