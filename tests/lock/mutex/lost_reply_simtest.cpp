/// Requests and replies that are lost, repeated or late.
#include "lock/virtual_lock.hpp"

namespace sluice {
namespace {

using LostReply = VirtualLock;

TEST_F(LostReply, T01_AcquireAskedAgainLeavesNoOrphan) {
  Mutex mutex{line_, "stock"};
  fail_next("lock/mutex/acquire", Fault::reply_lost);
  auto held = mutex.try_acquire().get();
  ASSERT_TRUE(held);
  EXPECT_EQ(line_.executed("lock/mutex/acquire"), 2U);
  const auto token = held->token().value;
  EXPECT_EQ(field("stock", held->owner().text), "1");
  EXPECT_EQ(held->release().get().kind, Kind::released);
  EXPECT_FALSE(exists("stock"));
  EXPECT_EQ(mutex.try_acquire().get()->token().value, token + 1);
}

TEST_F(LostReply, AcquireWithoutAnyAnswerIsTakenBack) {
  Mutex mutex{line_, "stock"};
  fail_next("lock/mutex/acquire", Fault::cut_off);
  try {
    (void)mutex.try_acquire().get();
    FAIL() << "acquired without a reply";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.effect(), Effect::unknown);
  }
  EXPECT_EQ(line_.executed("lock/mutex/release"), 1U);
  EXPECT_FALSE(exists("stock"));
}

TEST_F(LostReply, AcquireThatCannotBeTakenBackEndsWithItsLease) {
  Mutex mutex{line_, "stock", {.lease = 5s}};
  line_.plan = [](std::string_view call) {
    if (call == "lock/mutex/acquire") return Fault::cut_off;
    return call == "lock/mutex/release" ? Fault::refused : Fault::none;
  };
  EXPECT_THROW((void)mutex.try_acquire().get(), Error);
  heal();
  EXPECT_TRUE(exists("stock"));
  clock_.advance(5s + 1ms);
  EXPECT_TRUE(mutex.try_acquire().get());
}

TEST_F(LostReply, AcquireThatWasNotSentHasNothingToTakeBack) {
  Mutex mutex{line_, "stock"};
  fail_next("lock/mutex/acquire", Fault::refused);
  EXPECT_THROW((void)mutex.try_acquire().get(), Error);
  EXPECT_EQ(line_.executed("lock/mutex/release"), 0U);
}

TEST_F(LostReply, T02_ReleaseAskedAgainSucceedsOnce) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  fail_next("lock/mutex/release", Fault::reply_lost);
  EXPECT_EQ(held.release().get().kind, Kind::released);
  EXPECT_EQ(line_.executed("lock/mutex/release"), 2U);
  EXPECT_FALSE(exists("stock"));
}

TEST_F(LostReply, ReleaseThatFailsTwiceIsAnErrorWithUnknownEffect) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  fail_all("lock/mutex/release", Fault::cut_off);
  try {
    (void)held.release().get();
    FAIL() << "released without a reply";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.effect(), Effect::unknown);
  }
  EXPECT_FALSE(held.valid());
}

TEST_F(LostReply, T03_LateReleaseDoesNotTouchANewerHoldOfTheSameOwner) {
  Mutex mutex{line_, "stock"};
  const Owner owner;
  fail_next("lock/mutex/release", Fault::request_late);
  { const auto held = mutex.acquire(owner).get(); }  // its release is on the way
  EXPECT_TRUE(mutex.force_release().get());
  auto newer = mutex.acquire(owner).get();
  line_.let_go();
  EXPECT_EQ(line_.executed("lock/mutex/release"), 1U);
  EXPECT_EQ(field("stock", owner.id().text), "1");
  EXPECT_EQ(newer.release().get().kind, Kind::released);
}

// simulation: --primitive multi --profile operators --seeds 13999
TEST_F(LostReply, LateCopyOfAForcedReleaseDoesNotEndTheNextHold) {
  Mutex mutex{line_, "stock"};
  for (const bool was_held : {true, false}) {
    std::optional<Held> first;
    if (was_held) first = mutex.acquire().get();
    fail_next("lock/mutex/force_release", Fault::stranded);
    EXPECT_EQ(mutex.force_release().get(), was_held);
    auto next = mutex.acquire().get();
    const auto executed = line_.executed("lock/mutex/force_release");
    line_.let_go();
    EXPECT_EQ(line_.executed("lock/mutex/force_release"), executed + 1);
    EXPECT_EQ(next.release().get().kind, Kind::released);
  }
}

// simulation: --primitive mutex --seeds 34093
TEST_F(LostReply, LateCopyOfTheEndOfATurnDoesNotEndTheNextTurn) {
  const HandOff one_by_one{.within_process = 1};
  Mutex here{line_, "stock", {.hand_off = one_by_one}};
  Mutex there{far_, "stock"};
  auto first = here.acquire().get();
  Visitor second{here, 1h};
  Visitor third{here, 1h};
  fail_next("lock/mutex/pass", Fault::stranded);
  first.release().get();
  ASSERT_TRUE(second.in());
  Visitor other{there, 1h};
  line_.let_go();
  EXPECT_EQ(line_.executed("lock/mutex/pass"), 2U);
  EXPECT_TRUE(second.held->valid());
  EXPECT_TRUE(other.waits()) << "two hold at once";
  second.held->release().get();
  EXPECT_TRUE(other.in()) << "the true end of the turn";
}

TEST_F(LostReply, DoubledRequestsCountOnce) {
  Mutex mutex{line_, "stock"};
  const Owner owner;
  line_.plan = [](std::string_view) { return Fault::doubled; };
  auto outer = mutex.acquire(owner).get();
  auto inner = mutex.acquire(owner).get();
  EXPECT_EQ(inner.token(), outer.token());
  EXPECT_EQ(field("stock", owner.id().text), "2");
  EXPECT_EQ(inner.release().get(), (ReleaseOutcome{Kind::still_held, 1}));
  EXPECT_EQ(field("stock", owner.id().text), "1");
  heal();
  EXPECT_EQ(outer.release().get().kind, Kind::released);
}

TEST_F(LostReply, EnteringAgainWithoutAnAnswerLeavesTheOuterHold) {
  Mutex mutex{line_, "stock"};
  const Owner owner;
  auto outer = mutex.acquire(owner).get();
  fail_next("lock/mutex/recount", Fault::cut_off);
  EXPECT_THROW((void)mutex.acquire(owner).get(), Error);
  EXPECT_EQ(outer.entries(), 1U);
  EXPECT_EQ(field("stock", owner.id().text), "1");
  EXPECT_TRUE(outer.valid());
  EXPECT_EQ(outer.release().get().kind, Kind::released);
}

TEST_F(LostReply, L07_DestructorWithTheServerGoneNeverThrows) {
  Mutex mutex{line_, "stock"};
  const auto before = metrics().lock_release_failures.load();
  {
    const auto held = mutex.acquire().get();
    fail_all("lock/mutex/release", Fault::refused);
  }
  EXPECT_EQ(metrics().lock_release_failures.load(), before + 1);
  EXPECT_TRUE(exists("stock"));
}

TEST_F(LostReply, GrantThatTookAsLongAsItsLeaseIsGivenBack) {
  Mutex mutex{line_, "stock", {.lease = 1s}};
  fail_next("lock/mutex/acquire", Fault::reply_late);
  Visitor visitor{mutex, 0ms};
  clock_.advance(999ms);
  line_.let_go();
  EXPECT_TRUE(visitor.failed());
  EXPECT_FALSE(exists("stock"));
}

}  // namespace
}  // namespace sluice
