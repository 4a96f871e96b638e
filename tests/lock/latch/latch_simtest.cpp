/// Counting, waiting and resetting on virtual time.
#include <list>

#include "lock/latch/virtual_latch.hpp"

namespace sluice {
namespace {

class LatchTest : public VirtualLatch {};

TEST_F(LatchTest, S03_AwaitBeforeAndAfterZero) {
  ASSERT_TRUE(latch_.try_set_count(2).get());
  LatchWaiter early{latch_, 1h};
  EXPECT_EQ(latch_.count_down().get(), 1);
  EXPECT_TRUE(early.waits());
  EXPECT_EQ(latch_.count_down().get(), 0);
  EXPECT_TRUE(early.through());
  EXPECT_FALSE(exists("stock"));
  LatchWaiter late{latch_, 1h};
  EXPECT_TRUE(late.through());
  clock_.advance(20min);  // keys have timers too
  EXPECT_EQ(clock_.pending_timers(), 0U);
}

TEST_F(LatchTest, S03_DeleteByAJavaPeerLetsWaitersThrough) {
  latch_.try_set_count(2).get();
  LatchWaiter waiter{latch_, 1h};
  store_->run({"DEL", "stock"}).get();
  store_->run({"PUBLISH", channel_, "1"}).get();
  EXPECT_TRUE(waiter.through());
}

TEST_F(LatchTest, S03_ANewCountIsSetOnlyWhenItIsOpen) {
  EXPECT_TRUE(latch_.try_set_count(1).get());
  EXPECT_FALSE(latch_.try_set_count(5).get());
  EXPECT_EQ(latch_.count().get(), 1);
  latch_.count_down().get();
  EXPECT_TRUE(latch_.try_set_count(5).get());
  EXPECT_EQ(latch_.count().get(), 5);
}

TEST_F(LatchTest, K10_PartsCountOnceForEachCountThatIsSet) {
  for (int use = 0; use < 3; ++use) {
    ASSERT_TRUE(latch_.try_set_count(2).get());
    EXPECT_EQ(latch_.count_down_once("one").get(), 1);
    EXPECT_EQ(latch_.count_down_once("one").get(), 1);
    EXPECT_EQ(latch_.count_down_once("two").get(), 0);
    EXPECT_EQ(latch_.count_down_once("two").get(), 0);
  }
  latch_.reset(2).get();
  latch_.count_down_once("one").get();
  latch_.reset(2).get();
  EXPECT_EQ(latch_.count_down_once("one").get(), 1);
}

TEST_F(LatchTest, NeverSetIsOpen) {
  EXPECT_EQ(latch_.count().get(), 0);
  EXPECT_TRUE(latch_.try_wait().get());
  EXPECT_EQ(latch_.count_down().get(), 0);
  EXPECT_FALSE(exists("stock"));
}

TEST_F(LatchTest, CountsDownByMoreThanThereIs) {
  latch_.try_set_count(3).get();
  LatchWaiter waiter{latch_, 1h};
  EXPECT_EQ(latch_.count_down(2).get(), 1);
  EXPECT_EQ(latch_.count_down(2).get(), 0);
  EXPECT_TRUE(waiter.through());
}

TEST_F(LatchTest, ResetKeepsThoseWaitingWhoseLatchWasNeverOpen) {
  latch_.try_set_count(1).get();
  LatchWaiter waiter{latch_, 1h};
  latch_.reset(2).get();
  EXPECT_TRUE(waiter.waits()) << "a reset opened the latch";
  EXPECT_EQ(latch_.count_down().get(), 1);
  EXPECT_TRUE(waiter.waits());
  latch_.count_down().get();
  EXPECT_TRUE(waiter.through());
}

TEST_F(LatchTest, ResetToZeroOpens) {
  latch_.try_set_count(7).get();
  LatchWaiter waiter{latch_, 1h};
  latch_.reset(0).get();
  EXPECT_TRUE(waiter.through());
  EXPECT_FALSE(exists("stock"));
}

/// The waiter looks too late: the latch was open and is set anew.
TEST_F(LatchTest, OpeningThatIsOverIsNotMissed) {
  latch_.try_set_count(1).get();
  int looks = 0;
  line_.plan = [&](std::string_view call) {
    return call == "lock/latch/look" && ++looks == 2 ? Fault::request_late : Fault::none;
  };
  LatchWaiter waiter{latch_, 1h};  // its second look is on the way
  latch_.count_down().get();
  latch_.try_set_count(4).get();
  EXPECT_TRUE(waiter.waits());
  line_.let_go();
  EXPECT_TRUE(waiter.through());
  EXPECT_EQ(latch_.count().get(), 4);
}

TEST_F(LatchTest, OpeningOfAnEarlierTimeLetsNobodyThrough) {
  latch_.try_set_count(1).get();
  latch_.count_down().get();
  latch_.try_set_count(1).get();
  LatchWaiter waiter{latch_, 1h};
  EXPECT_TRUE(waiter.waits());
  clock_.advance(10min);  // and the server has forgotten that opening meanwhile
  EXPECT_TRUE(waiter.waits());
  latch_.count_down().get();
  EXPECT_TRUE(waiter.through());
}

/// The server forgets the number of the last opening, and begins again with the same one.
TEST_F(LatchTest, OpeningWithTheNumberOfAForgottenOneIsNotMissed) {
  latch_.try_set_count(1).get();
  latch_.count_down().get();
  latch_.try_set_count(1).get();
  LatchWaiter waiter{latch_, 1h};
  clock_.advance(10min + 1ms);
  ASSERT_FALSE(exists("sluice_latch_opened:{stock}"));
  fail_next("lock/latch/look", Fault::request_late);
  latch_.count_down().get();
  latch_.try_set_count(1).get();
  EXPECT_TRUE(waiter.waits());
  line_.let_go();
  EXPECT_TRUE(waiter.through());
}

TEST_F(LatchTest, OpeningBeforeTheSubscriptionIsNotMissed) {  // as P02
  latch_.try_set_count(1).get();
  line_.plan = [&](std::string_view call) {
    if (call == "listen") latch_.count_down().get();
    return Fault::none;
  };
  LatchWaiter waiter{latch_, 1h};
  EXPECT_TRUE(waiter.through());
}

TEST_F(LatchTest, OpeningDuringTheSecondLookIsNotMissed) {
  latch_.try_set_count(1).get();
  int looks = 0;
  line_.plan = [&](std::string_view call) {
    return call == "lock/latch/look" && ++looks == 2 ? Fault::reply_late : Fault::none;
  };
  LatchWaiter waiter{latch_, 1h};
  latch_.count_down().get();
  EXPECT_TRUE(waiter.waits());
  line_.let_go();
  EXPECT_TRUE(waiter.through());
}

TEST_F(LatchTest, WithoutAnyMessageItLooksAfterThirtySeconds) {
  latch_.try_set_count(1).get();
  LatchWaiter waiter{latch_, 1h};
  store_->run({"DEL", "stock"}).get();  // in silence
  clock_.advance(30s - 1ms);
  EXPECT_TRUE(waiter.waits());
  clock_.advance(1ms);
  EXPECT_TRUE(waiter.through());
}

TEST_F(LatchTest, PatienceEnds) {
  latch_.try_set_count(1).get();
  LatchWaiter waiter{latch_, 3s};
  clock_.advance(2999ms);
  EXPECT_TRUE(waiter.waits());
  clock_.advance(1ms);
  EXPECT_TRUE(waiter.gave_up());
}

TEST_F(LatchTest, StopEndsTheWait) {
  latch_.try_set_count(1).get();
  const auto timers = clock_.pending_timers();
  std::stop_source stop;
  LatchWaiter waiter{latch_, 1h, stop.get_token()};
  EXPECT_TRUE(waiter.waits());
  EXPECT_GT(clock_.pending_timers(), timers);
  stop.request_stop();
  EXPECT_TRUE(waiter.gave_up());
  EXPECT_EQ(clock_.pending_timers(), timers);
  EXPECT_EQ(store_->run({"PUBLISH", channel_, "0"}).get().as_integer(), 0) << "still subscribed";
}

TEST_F(LatchTest, AHundredWaitersWakeTogetherAndShareTheirLooks) {
  latch_.try_set_count(1).get();
  std::list<LatchWaiter> crowd;
  for (int i = 0; i < 100; ++i) crowd.emplace_back(latch_, 1h);
  const auto looked = line_.executed("lock/latch/look");
  int held_back = 0;
  line_.plan = [&](std::string_view call) {
    return call == "lock/latch/look" && ++held_back == 1 ? Fault::reply_late : Fault::none;
  };
  latch_.count_down().get();
  line_.let_go();
  for (const auto& waiter : crowd) EXPECT_TRUE(waiter.through());
  EXPECT_EQ(line_.executed("lock/latch/look"), looked + 2)
      << "the first one's, and all the others'";
}

TEST_F(LatchTest, FailedSubscriptionFailsTheWaiterAlone) {
  latch_.try_set_count(1).get();
  fail_all("listen", Fault::refused);
  const LatchWaiter unlucky{latch_, 1s};
  const LatchWaiter patient{latch_, 1h};
  clock_.advance(2s);
  EXPECT_TRUE(unlucky.failed());
  EXPECT_TRUE(patient.waits());
  heal();
  const LatchWaiter later{latch_, 1h};
  clock_.advance(1s);
  latch_.count_down().get();
  EXPECT_TRUE(patient.through());
  EXPECT_TRUE(later.through());
}

TEST_F(LatchTest, ArgumentsOutOfRangeAreRefused) {
  EXPECT_THROW((Latch{line_, ""}), Error);
  EXPECT_THROW((Latch{line_, "x", {.remember = 999ms}}), Error);
  EXPECT_THROW((Latch{line_, "x", {.most_remembered = 0}}), Error);
  EXPECT_THROW((void)latch_.try_set_count(0).get(), Error);
  EXPECT_THROW((void)latch_.try_set_count(Latch::largest_count + 1).get(), Error);
  EXPECT_THROW(latch_.reset(-1).get(), Error);
  EXPECT_THROW((void)latch_.count_down(0).get(), Error);
  EXPECT_THROW((void)latch_.count_down_once("").get(), Error);
  EXPECT_THROW((void)latch_.count_down_once(std::string(257, 'x')).get(), Error);
  EXPECT_TRUE(latch_.try_set_count(Latch::largest_count).get());
  EXPECT_EQ(latch_.count_down().get(), Latch::largest_count - 1);
}

TEST_F(LatchTest, KeyThatIsNoCountIsAnError) {
  for (const auto& command :
       {std::vector<std::string_view>{"SET", "stock", "text"}, {"RPUSH", "stock", "text"}}) {
    store_->run({"DEL", "stock"}).get();
    store_->run(Words{command}).get();
    try {
      (void)latch_.count_down().get();
      FAIL() << "counted down a " << command.front();
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::wrong_type);
    }
    EXPECT_THROW((void)latch_.count().get(), Error);
  }
}

// --- U10, U03: what a new user met ---

class LatchFrictions : public VirtualLatch {};

TEST_F(LatchFrictions, U10_ALatchThatWasNeverSetIsToldFromAnOpenOne) {
  EXPECT_EQ(latch_.state().get(), LatchState::not_set);
  EXPECT_EQ(latch_.state(1h).get(), LatchState::not_set) << "at once";
  latch_.count_down().get();
  EXPECT_EQ(latch_.state().get(), LatchState::not_set) << "a count-down sets nothing";
  latch_.try_set_count(1).get();
  EXPECT_EQ(latch_.state().get(), LatchState::closed);
  latch_.count_down().get();
  EXPECT_EQ(latch_.state().get(), LatchState::open);
  clock_.advance(10min - 1ms);
  EXPECT_EQ(latch_.state().get(), LatchState::open) << "as long as count-downs are remembered";
  clock_.advance(2ms);
  EXPECT_EQ(latch_.state().get(), LatchState::not_set);
  latch_.reset(0).get();
  EXPECT_EQ(latch_.state().get(), LatchState::open) << "somebody has opened it";
  EXPECT_EQ(to_string(LatchState::not_set), "not_set");
}

TEST_F(LatchFrictions, U10_AnOpeningIsRememberedAsLongAsTheOptionSays) {
  Latch latch{line_, "import", {.remember = 24h}};
  latch.try_set_count(1).get();
  latch.count_down().get();
  clock_.advance(23h);
  EXPECT_EQ(latch.state().get(), LatchState::open);
}

TEST_F(LatchFrictions, U03_WhatIsNoCountIsRefusedAndLeftAsItIs) {
  for (const auto& value : {std::vector<std::string_view>{"SET", "stock", "text"},
                            {"SET", "stock", "1.5"},
                            {"RPUSH", "stock", "text"},
                            {"HSET", "stock", "name", "tea"}}) {
    SCOPED_TRACE(value.front());
    store_->run({"DEL", "stock"}).get();
    store_->run(Words{value}).get();
    const std::string before = contents("stock");
    EXPECT_EQ(error_of(latch_.try_set_count(3)), Errc::wrong_type);
    EXPECT_EQ(error_of(latch_.reset(3)), Errc::wrong_type);
    EXPECT_EQ(error_of(latch_.reset(0)), Errc::wrong_type);
    EXPECT_EQ(error_of(latch_.state(1h)), Errc::wrong_type) << "at once";
    EXPECT_EQ(error_of(latch_.count()), Errc::wrong_type);
    EXPECT_EQ(error_of(latch_.count_down()), Errc::wrong_type);
    EXPECT_EQ(contents("stock"), before);
  }
}

TEST_F(LatchFrictions, Attack_AnOpeningThatIsNoNumberIsRefused) {
  latch_.try_set_count(1).get();
  store_->run({"SET", "sluice_latch_opened:{stock}", "text"}).get();
  EXPECT_EQ(error_of(latch_.state(1h)), Errc::wrong_type) << "at once";
  EXPECT_EQ(error_of(latch_.count()), Errc::wrong_type);
  EXPECT_TRUE(error_of(latch_.count_down()));
  EXPECT_EQ(contents("stock"), "string \"1\"") << "it does not open unheard";
}

}  // namespace
}  // namespace sluice
