/// Requests and replies of the fair lock that are lost, repeated or late.
#include "lock/fair/virtual_fair.hpp"

namespace sluice {
namespace {

class FairLostReply : public VirtualFair {
 protected:
  FairMutex mutex_{line_, "stock"};
  FairMutex elsewhere_{far_, "stock"};
};

TEST_F(FairLostReply, T01_AcquireAskedAgainLeavesNoOrphan) {
  fail_next("lock/fair/acquire", Fault::reply_lost);
  auto held = mutex_.try_acquire().get();
  ASSERT_TRUE(held);
  EXPECT_EQ(line_.executed("lock/fair/acquire"), 2U);
  const auto token = held->token().value;
  EXPECT_EQ(field("stock", held->owner().text), "1");
  EXPECT_EQ(held->release().get().kind, Kind::released);
  EXPECT_FALSE(exists("stock"));
  EXPECT_EQ(mutex_.try_acquire().get()->token().value, token + 1);
}

TEST_F(FairLostReply, T01_QueueIsJoinedOnceHoweverOftenItIsAsked) {
  auto held = elsewhere_.acquire().get();
  line_.plan = [](std::string_view call) {
    return call == "listen" ? Fault::none : Fault::doubled;
  };
  Visitor visitor{mutex_, 1h};
  EXPECT_EQ(queue().size(), 1U);
  heal();
  held.release().get();
  EXPECT_TRUE(visitor.in());
  expect_nobody_waits();
}

TEST_F(FairLostReply, AcquireWithoutAnyAnswerIsTakenBack) {
  fail_next("lock/fair/acquire", Fault::cut_off);
  EXPECT_THROW((void)mutex_.try_acquire().get(), Error);
  EXPECT_EQ(line_.executed("lock/fair/release"), 1U);
  EXPECT_FALSE(exists("stock"));
}

TEST_F(FairLostReply, PlaceWithoutAnyAnswerIsTakenBack) {
  Visitor opens{mutex_, 1h};
  Visitor behind{mutex_, 1h};
  opens.held->release().get();
  ASSERT_TRUE(behind.in());  // and the inbox is open
  fail_all("lock/fair/acquire", Fault::cut_off);
  Visitor unlucky{mutex_, 100ms};
  for (int i = 0; i < 20; ++i) clock_.advance(10ms);
  EXPECT_TRUE(unlucky.failed());
  heal();
  expect_nobody_waits();
}

TEST_F(FairLostReply, K30_FailedLookKeepsThePlace) {
  auto held = elsewhere_.acquire().get();
  Visitor visitor{mutex_, 1h};
  fail_next("lock/fair/acquire", Fault::refused);
  clock_.advance(31s);
  EXPECT_TRUE(visitor.waits());
  held.release().get();
  EXPECT_TRUE(visitor.in());
}

TEST_F(FairLostReply, T02_ReleaseAskedAgainSucceedsOnce) {
  auto held = mutex_.acquire().get();
  Visitor first{elsewhere_, 1h};
  Visitor second{elsewhere_, 1h};
  fail_next("lock/fair/release", Fault::reply_lost);
  EXPECT_EQ(held.release().get().kind, Kind::released);
  EXPECT_EQ(line_.executed("lock/fair/release"), 2U);
  EXPECT_TRUE(first.in());
  EXPECT_TRUE(first.held->valid());
  EXPECT_TRUE(second.waits());
}

TEST_F(FairLostReply, T03_LateReleaseDoesNotTouchANewerHoldOfTheSameOwner) {
  const Owner owner;
  fail_next("lock/fair/release", Fault::request_late);
  { const auto held = mutex_.acquire(owner).get(); }  // its release is on the way
  EXPECT_TRUE(mutex_.force_release().get());
  auto newer = mutex_.acquire(owner).get();
  line_.let_go();
  EXPECT_EQ(field("stock", owner.id().text), "1");
  EXPECT_EQ(newer.release().get().kind, Kind::released);
}

TEST_F(FairLostReply, LateCopyOfAForcedReleaseDoesNotEndTheNextHold) {
  const auto first = mutex_.acquire().get();
  fail_next("lock/fair/force_release", Fault::stranded);
  EXPECT_TRUE(mutex_.force_release().get());
  auto next = mutex_.acquire().get();
  line_.let_go();
  EXPECT_EQ(line_.executed("lock/fair/force_release"), 2U);
  EXPECT_EQ(next.release().get().kind, Kind::released);
}

TEST_F(FairLostReply, LateGiveUpDoesNotTouchANewerPlaceOfTheSameOwner) {
  const Owner owner;
  auto held = elsewhere_.acquire().get();
  fail_next("lock/fair/release", Fault::request_late);
  EXPECT_FALSE([&] {
    auto trying = mutex_.try_acquire(owner, 50ms);
    std::optional<Held> got;
    spawn([](Task<std::optional<Held>> task, std::optional<Held>& into) -> Task<void> {
      into = co_await task;
    }(std::move(trying), got));
    clock_.advance(50ms);
    return got.has_value();
  }());
  std::optional<Held> again;
  spawn([](FairMutex& mutex, const Owner& who, std::optional<Held>& into) -> Task<void> {
    auto acquiring = mutex.acquire(who);
    into = co_await acquiring;
  }(mutex_, owner, again));
  EXPECT_EQ(queue(), std::vector{owner.id().text}) << "it took over its old place";
  line_.let_go();
  EXPECT_EQ(queue(), std::vector{owner.id().text});
  held.release().get();
  EXPECT_TRUE(again);
}

TEST_F(FairLostReply, GiveUpThatCrossesTheGrantHandsTheLockOn) {
  auto held = elsewhere_.acquire().get();
  Visitor hasty{mutex_, 50ms};
  Visitor patient{elsewhere_, 1h};
  fail_next("lock/fair/release", Fault::request_late);
  clock_.advance(50ms);
  EXPECT_FALSE(hasty.waits());
  EXPECT_FALSE(hasty.in());
  held.release().get();  // to a request that has given up already
  EXPECT_TRUE(patient.waits());
  line_.let_go();
  EXPECT_TRUE(patient.in());
  expect_nobody_waits();
}

TEST_F(FairLostReply, GrantMessageThatIsLostIsFoundByALook) {
  auto held = elsewhere_.acquire().get();
  line_.plan = [&](std::string_view call) {
    // between the answer and the next message the inbox has lost its connection, as it were
    return call == "lock/fair/acquire" ? Fault::reply_late : Fault::none;
  };
  Visitor visitor{mutex_, 1h};
  line_.let_go();  // of the look without an inbox; now it asks for a place
  held.release().get();
  heal();
  line_.let_go();
  EXPECT_TRUE(visitor.in());
}

TEST_F(FairLostReply, LateCopyOfAnAcquireCostsAClaim) {
  auto held = elsewhere_.acquire().get();
  Visitor opens{mutex_, 10ms};
  clock_.advance(10ms);
  fail_next("lock/fair/acquire", Fault::request_late);
  std::stop_source stop;
  Visitor gone{mutex_, 1h, stop.get_token()};
  Visitor waits{elsewhere_, 1h};
  stop.request_stop();
  line_.let_go();  // the place of somebody who has gone; it says so
  EXPECT_FALSE(gone.waits());
  held.release().get();
  clock_.advance(2s);
  EXPECT_TRUE(waits.in());
}

TEST_F(FairLostReply, DoubledRequestsOfAnOwnerCountOnce) {
  const Owner owner;
  line_.plan = [](std::string_view) { return Fault::doubled; };
  auto outer = mutex_.acquire(owner).get();
  auto inner = mutex_.acquire(owner).get();
  EXPECT_EQ(inner.token(), outer.token());
  EXPECT_EQ(field("stock", owner.id().text), "2");
  EXPECT_EQ(inner.release().get(), (ReleaseOutcome{Kind::still_held, 1}));
  heal();
  EXPECT_EQ(outer.release().get().kind, Kind::released);
}

}  // namespace
}  // namespace sluice
