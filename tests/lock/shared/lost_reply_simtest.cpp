/// Requests and replies of both kinds that are lost, repeated or late.
#include "lock/shared/virtual_shared.hpp"

namespace sluice {
namespace {

class SharedLostReply : public VirtualShared {
 protected:
  static constexpr bool kinds[] = {true, false};
  static std::optional<Held> enter(SharedMutex& mutex, const Owner& owner, bool shared) {
    return shared ? mutex.try_acquire_shared(owner).get() : mutex.try_acquire(owner).get();
  }
  std::string entries(const Owner& owner, bool shared) {
    return field("prices", owner.id().text + (shared ? "" : ":write"));
  }
};

TEST_F(SharedLostReply, T01_AcquireAskedAgainLeavesNoOrphan) {
  for (const bool shared : kinds) {
    const Owner owner;
    const auto asked = line_.executed("lock/shared/acquire");
    fail_next("lock/shared/acquire", Fault::reply_lost);
    auto held = enter(here_, owner, shared);
    ASSERT_TRUE(held);
    EXPECT_EQ(line_.executed("lock/shared/acquire"), asked + 2);
    EXPECT_EQ(entries(owner, shared), "1");
    EXPECT_EQ(held->release().get().kind, Kind::released);
    expect_nothing_left();
  }
}

TEST_F(SharedLostReply, ReplyThatComesAfterTheLeaseMakesTheCallerWaitAgain) {
  SharedMutex brief{line_, "prices", {.lease = 1s}};
  Writer before{there_, 0ms};
  Writer opens{brief, 1h};  // the inbox
  before.leave();
  ASSERT_TRUE(opens.in());
  opens.leave();
  fail_next("lock/shared/acquire", Fault::reply_late);
  const auto late = metrics().lock_late.load();
  Writer writer{brief, 1h};
  clock_.advance(2s);
  line_.let_go();
  clock_.advance(2s);
  EXPECT_EQ(metrics().lock_late.load(), late + 1);
  EXPECT_TRUE(writer.in());
}

TEST_F(SharedLostReply, T01_AcquireWithoutAnyAnswerIsTakenBack) {
  for (const bool shared : kinds) {
    const Owner owner;
    fail_next("lock/shared/acquire", Fault::cut_off);
    try {
      (void)enter(here_, owner, shared);
      FAIL() << "acquired without a reply";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.effect(), Effect::unknown);
    }
    expect_nothing_left();
  }
}

TEST_F(SharedLostReply, T02_ReleaseAskedAgainSucceedsOnce) {
  for (const bool shared : kinds) {
    const Owner owner;
    auto held = enter(here_, owner, shared);
    const auto asked = line_.executed("lock/shared/release");
    fail_next("lock/shared/release", Fault::reply_lost);
    EXPECT_EQ(held->release().get().kind, Kind::released);
    EXPECT_EQ(line_.executed("lock/shared/release"), asked + 2);
    expect_nothing_left();
  }
}

TEST_F(SharedLostReply, T03_LateReleaseDoesNotTouchANewerHoldOfTheSameOwner) {
  for (const bool shared : kinds) {
    const Owner owner;
    auto held = enter(here_, owner, shared);
    fail_next("lock/shared/release", Fault::request_late);
    held.reset();  // its release is on the way
    EXPECT_TRUE(there_.force_release().get());
    auto newer = enter(here_, owner, shared);
    ASSERT_TRUE(newer);
    line_.let_go();
    EXPECT_EQ(entries(owner, shared), "1");
    EXPECT_EQ(exists(hold_key(owner.id())), shared);
    EXPECT_EQ(newer->release().get().kind, Kind::released);
    expect_nothing_left();
  }
}

TEST_F(SharedLostReply, LateCopyOfAForcedReleaseDoesNotEndTheNextHold) {
  for (const bool shared : kinds) {
    const Owner owner;
    const auto first = enter(here_, owner, shared);
    const auto executed = line_.executed("lock/shared/force_release");
    fail_next("lock/shared/force_release", Fault::stranded);
    EXPECT_TRUE(here_.force_release().get());
    auto next = enter(here_, owner, shared);
    ASSERT_TRUE(next);
    line_.let_go();
    EXPECT_EQ(line_.executed("lock/shared/force_release"), executed + 2);
    EXPECT_EQ(next->release().get().kind, Kind::released);
  }
}

TEST_F(SharedLostReply, DoubledRequestsCountOnce) {
  for (const bool shared : kinds) {
    const Owner owner;
    line_.plan = [](std::string_view) { return Fault::doubled; };
    auto outer = enter(here_, owner, shared);
    auto inner = enter(here_, owner, shared);
    EXPECT_EQ(entries(owner, shared), "2");
    EXPECT_EQ(inner->release().get(), (ReleaseOutcome{Kind::still_held, 1}));
    EXPECT_EQ(entries(owner, shared), "1");
    EXPECT_FALSE(exists(hold_key(owner.id(), 2)));
    heal();
    EXPECT_EQ(outer->release().get().kind, Kind::released);
    expect_nothing_left();
  }
}

TEST_F(SharedLostReply, DoubledQuestionsTakeOnePlaceInTheQueue) {
  Writer writer{there_, 0ms};
  { const Reader opens_the_inbox{here_, 1h}; }
  line_.plan = [](std::string_view) { return Fault::doubled; };
  Reader reader{here_, 1h};
  Writer second{here_, 1h};
  EXPECT_EQ(length("sluice_rw_read_line:{prices}"), 1);
  EXPECT_EQ(length("sluice_rw_write_line:{prices}"), 1);
  writer.leave();
  EXPECT_TRUE(second.in());
  second.leave();
  EXPECT_TRUE(reader.in());
  reader.leave();
  heal();
  expect_nothing_left();
}

TEST_F(SharedLostReply, LostMessageIsMadeUpByALook) {
  Writer writer{there_, 0ms};
  Reader reader{here_, 1h};
  line_.lose_messages();
  writer.leave();
  EXPECT_TRUE(reader.waits());
  line_.let_messages_go();
  clock_.advance(31s);
  EXPECT_TRUE(reader.in());
}

TEST_F(SharedLostReply, GrantThatTookAsLongAsItsLeaseIsGivenBack) {
  SharedMutex mutex{line_, "prices", {.lease = 1s}};
  fail_next("lock/shared/acquire", Fault::reply_late);
  Reader reader{mutex, 0ms};
  clock_.advance(999ms);
  line_.let_go();
  EXPECT_TRUE(reader.failed());
  expect_nothing_left();
}

TEST_F(SharedLostReply, L07_DestructorWithTheServerGoneNeverThrows) {
  for (const bool shared : kinds) {
    const auto before = metrics().lock_release_failures.load();
    {
      const auto held = enter(here_, Owner{}, shared);
      fail_next("lock/shared/release", Fault::refused);
    }
    EXPECT_EQ(metrics().lock_release_failures.load(), before + 1);
    clock_.advance(31s);
  }
}

}  // namespace
}  // namespace sluice
