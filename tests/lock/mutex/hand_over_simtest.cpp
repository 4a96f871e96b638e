/// From hand to hand: within a process without the server, between processes by the release itself.
#include <list>

#include "lock/virtual_lock.hpp"

namespace sluice {
namespace {

class HandOver : public VirtualLock {
 protected:
  /// A stranger who listens where Redisson's waiters listen.
  Listener stranger(std::vector<std::string>& heard) {
    return store_
        ->listen("redisson_lock__channel:{stock}",
                 [&heard](const Message& message) { heard.push_back(message.payload); })
        .get();
  }

  Mutex here_{line_, "stock"};
  Mutex there_{far_, "stock"};
};

TEST_F(HandOver, WithinAProcessGoesInTheOrderOfArrivalWithoutTheServer) {
  auto held = here_.acquire().get();
  std::list<Visitor> crowd;
  for (int i = 0; i < 8; ++i) crowd.emplace_back(here_, 1h);
  EXPECT_EQ(line_.executed("lock/mutex/acquire"), 1U) << "whoever comes waits here";
  FencingToken last = held.token();
  held.release().get();
  for (auto& visitor : crowd) {
    ASSERT_TRUE(visitor.in());
    EXPECT_GT(visitor.held->token(), last);
    last = visitor.held->token();
    visitor.held->release().get();
  }
  EXPECT_EQ(line_.executed("lock/mutex/acquire"), 1U);
  EXPECT_EQ(line_.executed("lock/mutex/pass"), 1U);
  EXPECT_EQ(line_.executed("lock/mutex/release"), 1U) << "the last one only";
  EXPECT_FALSE(exists("stock"));
}

TEST_F(HandOver, BetweenProcessesTakesOneScript) {
  auto held = there_.acquire().get();
  Visitor visitor{here_, 1h};
  const auto asked = line_.executed("lock/mutex/acquire");
  held.release().get();
  ASSERT_TRUE(visitor.in());
  EXPECT_GT(visitor.held->token(), held.token());
  EXPECT_EQ(line_.executed("lock/mutex/acquire"), asked) << "nobody had to ask";
  EXPECT_EQ(field("stock", visitor.held->owner().text), "1");
  visitor.held->release().get();
  EXPECT_FALSE(exists("stock"));
  EXPECT_FALSE(exists("sluice_lock_queue:{stock}"));
}

TEST_F(HandOver, GrantBeforeTheRefusalIsReadIsNotMissed) {
  auto held = there_.acquire().get();
  Visitor first{here_, 1h};  // opens the inbox
  held.release().get();
  first.held->release().get();

  held = there_.acquire().get();
  fail_next("lock/mutex/acquire", Fault::reply_late);
  Visitor visitor{here_, 1h};  // was refused, is in the queue, and does not know yet
  held.release().get();
  EXPECT_TRUE(visitor.waits());
  line_.let_go();
  EXPECT_TRUE(visitor.in());
}

TEST_F(HandOver, GrantIsALeaseOnlyWhenItWasTakenUp) {
  auto held = there_.acquire().get();
  Visitor visitor{here_, 1h};
  held.release().get();
  ASSERT_TRUE(visitor.in());
  EXPECT_LT(ttl("stock"), 2500ms);
  EXPECT_LT(visitor.held->valid_for(), 2100ms);
  clock_.advance(1s);
  EXPECT_GT(ttl("stock"), 28s) << "the first renewal made it a full lease";
  EXPECT_GT(visitor.held->valid_for(), 28s);
  clock_.advance(10min);
  EXPECT_TRUE(visitor.held->valid());
}

TEST_F(HandOver, DeadProcessIsSkipped) {
  auto held = there_.acquire().get();
  {
    test::FaultyStore third{*store_};
    Mutex gone{third, "stock"};
    Visitor doomed{gone, 1h};
    store_
        ->run({"LPUSH", "sluice_lock_queue:{stock}",
               "r 30000 2000 sluice:inbox:of-nobody dead:1 host 1 t1 dead"})
        .get();
    Visitor visitor{here_, 1h};
    held.release().get();
    EXPECT_TRUE(doomed.in());
    doomed.held->release().get();
    EXPECT_TRUE(visitor.in());
  }
}

TEST_F(HandOver, ProcessThatStandsStillCostsTwoSeconds) {
  auto held = there_.acquire().get();
  test::FaultyStore third{*store_};
  Mutex slow{third, "stock"};
  Visitor sleeper{slow, 1h};
  Visitor visitor{here_, 1h};
  stop(third);
  held.release().get();
  EXPECT_FALSE(sleeper.in());
  clock_.advance(1400ms);
  EXPECT_FALSE(visitor.in());
  clock_.advance(600ms);
  ASSERT_TRUE(visitor.in());
  go_on(third);
  EXPECT_TRUE(sleeper.waits()) << "its grant is over, and it knows";
  visitor.held->release().get();
  EXPECT_TRUE(sleeper.in());
}

TEST_F(HandOver, TheProcessThatIsToLookMayStandStillToo) {
  test::FaultyStore third{*store_};
  test::FaultyStore fourth{*store_};
  test::FaultyStore fifth{*store_};
  Mutex slow{third, "stock"};
  Mutex slow_too{fourth, "stock"};
  Mutex quick{fifth, "stock"};
  for (const bool was_told_before : {false, true}) {
    auto held = there_.acquire().get();
    std::optional<Visitor> before;
    if (was_told_before) before.emplace(quick, 1h);
    Visitor sleeper{slow, 1h};
    Visitor looks{slow_too, 1h};
    Visitor last{here_, 1h};
    if (was_told_before) {
      held.release().get();
      ASSERT_TRUE(before->in());
      held = std::move(*before->held);
      clock_.advance(300ms);
    }
    stop(third);
    stop(fourth);
    held.release().get();
    const auto asked = line_.executed("lock/mutex/acquire");
    clock_.advance(4s);
    EXPECT_TRUE(last.in());
    EXPECT_LE(line_.executed("lock/mutex/acquire"), asked + 4);
    go_on(third);
    go_on(fourth);
  }
}

TEST_F(HandOver, WhoeverWasToLookMayBeDeadOrLeave) {
  test::FaultyStore third{*store_};
  Mutex slow{third, "stock"};
  for (const bool leaves : {false, true}) {
    std::stop_source stop;
    auto held = there_.acquire().get();
    Visitor sleeper{slow, 1h};
    std::optional<Visitor> looks;
    if (leaves) looks.emplace(there_, 1h, stop.get_token());
    for (int i = 0; !leaves && i < 3; ++i)
      store_
          ->run({"RPUSH", "sluice_lock_queue:{stock}",
                 "r" + std::to_string(i) + " 30000 2000 sluice:inbox:of-nobody dead:1 host 1 t1 d"})
          .get();
    Visitor last{here_, 1h};
    VirtualLock::stop(third);
    held.release().get();
    stop.request_stop();
    clock_.advance(2s);
    EXPECT_TRUE(last.in()) << (leaves ? "it left" : "it is dead");
    go_on(third);
  }
}

TEST_F(HandOver, AHundredProcessesBehindHoldsOfSecondsLookSeldom) {
  auto before_all = there_.acquire().get();
  std::list<test::FaultyStore> lines;
  std::list<Mutex> mutexes;
  std::list<Visitor> visitors;
  for (int i = 0; i < 100; ++i)
    visitors.emplace_back(mutexes.emplace_back(lines.emplace_back(*store_), "stock"), 1h);
  std::optional<Held> held = std::move(before_all);
  const auto looks = [&] {
    std::size_t all = 0;
    for (auto& line : lines) all += line.executed("lock/mutex/acquire");
    return all;
  };
  const auto before = looks();
  auto next = visitors.begin();
  for (int turn = 0; turn < 8; ++turn, ++next) {
    held.reset();
    ASSERT_TRUE(next->in());
    held = std::move(next->held);
    clock_.advance(3s);  // long enough that those look who were asked to
  }
  EXPECT_LE(looks() - before, 8U * 3U * 12U) << "a dozen a second, whatever the number";
}

TEST_F(HandOver, TurnOfAProcessEndsWhenAnotherWaits) {
  Mutex here{line_, "stock", {.hand_off = {.within_process = 3}}};
  auto held = here.acquire().get();
  Visitor other{there_, 1h};
  std::list<Visitor> crowd;
  for (int i = 0; i < 8; ++i) crowd.emplace_back(here, 1h);
  int before_other = 0;
  held.release().get();
  for (auto& visitor : crowd) {
    if (other.in()) break;
    ASSERT_TRUE(visitor.in());
    ++before_other;
    visitor.held->release().get();
  }
  EXPECT_LE(before_other, 3);
  ASSERT_TRUE(other.in());
  other.held->release().get();
  for (auto& visitor : crowd) {
    if (!visitor.held || !visitor.in()) continue;
    visitor.held->release().get();
  }
  for (auto& visitor : crowd) EXPECT_TRUE(visitor.in());
}

TEST_F(HandOver, TurnOfAProcessEndsWithItsTime) {
  auto held = here_.acquire().get();
  std::list<Visitor> crowd;
  for (int i = 0; i < 3; ++i) crowd.emplace_back(here_, 1h);
  held.release().get();
  Visitor other{there_, 1h};
  ASSERT_TRUE(crowd.front().in());
  clock_.advance(101ms);
  crowd.front().held->release().get();
  EXPECT_TRUE(other.in());
}

TEST_F(HandOver, StrangersGetTheirChanceWhenEachThatWaitedWasIn) {
  std::vector<std::string> heard;
  const auto listener = stranger(heard);
  Mutex& here = here_;
  Mutex& there = there_;
  std::optional<Held> held = here.acquire().get();
  int handed = 0;
  while (heard.empty() && handed < 100) {
    Visitor visitor{handed % 2 ? here : there, 1h};
    held->release().get();
    if (!heard.empty()) {
      EXPECT_FALSE(exists("stock")) << "free for the stranger";
      EXPECT_TRUE(visitor.waits());
      clock_.advance(11ms);  // who does not come
      EXPECT_TRUE(visitor.in());
    }
    ASSERT_TRUE(visitor.in());
    held = std::move(visitor.held);
    ++handed;
  }
  EXPECT_EQ(handed, 2);
}

TEST_F(HandOver, K31_FreeLockIsLeftToStrangersForAMoment) {
  std::vector<std::string> heard;
  const auto listener = stranger(heard);
  here_.acquire().get().release().get();
  EXPECT_FALSE(there_.try_acquire().get()) << "a stranger may be on its way";
  Visitor visitor{here_, 1h};
  EXPECT_TRUE(visitor.waits());
  clock_.advance(4ms);
  EXPECT_TRUE(visitor.waits());
  clock_.advance(3ms);  // who does not come
  EXPECT_TRUE(visitor.in());
}

TEST_F(HandOver, K31_WithoutStrangersALockIsFreeAtOnce) {
  auto outside = store_->run({"HSET", "stock", "00000000-0000-4000-8000-000000000000:1", "1"});
  (void)outside.get();
  Visitor visitor{here_, 1h};  // listens to the channel, behind Redisson
  EXPECT_EQ(store_->run({"PUBSUB", "CHANNELS", "redisson*"}).get().as_items().size(), 2U);
  Visitor other{there_, 1h};
  store_->run({"DEL", "stock"}).get();
  store_->run({"PUBLISH", "redisson_lock__channel:{stock}", "0"}).get();
  Visitor& first = visitor.in() ? visitor : other;
  Visitor& second = visitor.in() ? other : visitor;
  ASSERT_TRUE(first.in());
  first.held->release().get();
  EXPECT_TRUE(second.in()) << "none that listens is a stranger";
}

TEST_F(HandOver, K31_ProcessWithManyWaitersLeavesTheLockToStrangersAfterEachSection) {
  std::vector<std::string> heard;
  const auto listener = stranger(heard);
  auto held = here_.acquire().get();
  std::list<Visitor> crowd;
  for (int i = 0; i < 3; ++i) crowd.emplace_back(here_, 1h);
  held.release().get();
  for (auto& visitor : crowd) {
    EXPECT_FALSE(exists("stock")) << "free for the stranger";
    clock_.advance(7ms);
    ASSERT_TRUE(visitor.in());
    visitor.held->release().get();
  }
}

TEST_F(HandOver, WaiterThatGaveUpLeavesNoPlaceInTheQueue) {
  auto held = there_.acquire().get();
  std::stop_source stop;
  Visitor visitor{here_, 1h, stop.get_token()};
  EXPECT_TRUE(exists("sluice_lock_queue:{stock}"));
  stop.request_stop();
  EXPECT_FALSE(exists("sluice_lock_queue:{stock}"));
  held.release().get();
  EXPECT_FALSE(exists("stock"));
}

TEST_F(HandOver, TokensRiseThoughTheServerLostItsData) {
  auto held = here_.acquire().get();
  const auto before = held.token();
  held.release().get();
  store_->run({"FLUSHALL"}).get();
  clock_.advance(1ms);
  EXPECT_GT(here_.acquire().get().token(), before);
}

TEST_F(HandOver, SmallCounterOfAJavaProgramIsLifted) {
  store_->run({"SET", "redisson_lock_token:{stock}", "41"}).get();
  EXPECT_GT(here_.acquire().get().token().value, 1'000'000'000'000'000U);
}

TEST_F(HandOver, A03_CounterThatIsNoTokenIsRefusedAndStays) {
  for (const std::string spoilt : {"abc", "9223372036854775807"}) {
    store_->run({"SET", "redisson_lock_token:{stock}", spoilt}).get();
    EXPECT_THROW((void)here_.acquire().get(), Error);
    EXPECT_EQ(store_->run({"GET", "redisson_lock_token:{stock}"}).get(),
              Value::bulk_string(spoilt));
    EXPECT_FALSE(exists("stock"));
  }
}

TEST_F(HandOver, TenThousandWaitersDoNotNestOnTheStack) {
  constexpr int many = 10'000;
  Mutex here{line_, "stock", {.hand_off = {.within_process = 100'000}}};
  int done = 0;
  const auto visit = [](Mutex& mutex, int& count) -> Task<void> {
    auto acquiring = mutex.acquire();
    auto held = co_await acquiring;
    ++count;
    auto releasing = held.release();
    co_await releasing;
  };
  auto held = here.acquire().get();
  for (int i = 0; i < many; ++i) spawn(visit(here, done));
  held.release().get();
  EXPECT_EQ(done, many);
}

TEST_F(HandOver, UnwatchedHoldsGoThroughTheServer) {
  Mutex here{line_, "stock", {.lease = 2s, .watchdog = false}};
  auto held = here.acquire().get();
  Visitor first{here, 1h};
  Visitor second{here, 1h};
  clock_.advance(1s);
  held.release().get();
  ASSERT_TRUE(first.in());
  EXPECT_GT(first.held->valid_for(), 1900ms) << "its own lease, from the hand-over";
  clock_.advance(2001ms);
  EXPECT_FALSE(first.held->valid());
  EXPECT_TRUE(second.in());
}

TEST_F(HandOver, LostHolderLetsTheWaitersOfItsProcessAsk) {
  auto held = here_.acquire().get();
  Visitor visitor{here_, 1h};
  store_->run({"DEL", "stock"}).get();
  clock_.advance(10s);  // the renewal finds out
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(visitor.in());
}

TEST_F(HandOver, L06_ForceReleaseWakesAWaiterAndTellsTheHolder) {
  auto held = here_.acquire().get();
  std::optional<LostCause> cause;
  held.on_lost([&](LostCause why) { cause = why; });
  Visitor visitor{here_, 1h};
  EXPECT_TRUE(here_.force_release().get());
  EXPECT_EQ(cause, LostCause::taken);
  EXPECT_TRUE(visitor.in());
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_TRUE(visitor.held->valid());
}

}  // namespace
}  // namespace sluice
