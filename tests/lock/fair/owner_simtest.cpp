/// Owners of a fair lock: who enters again, who waits twice, who is shown; and the standard
/// library.
#include <mutex>
#include <thread>

#include "lock/fair/virtual_fair.hpp"
#include "sluice/lock_info.hpp"

namespace sluice {
namespace {

class FairOwner : public VirtualFair {
 protected:
  FairMutex mutex_{line_, "stock"};
  FairMutex elsewhere_{far_, "stock"};
};

TEST_F(FairOwner, L04_EntersAgainEvenWhileOthersWait) {
  const Owner owner;
  auto outer = mutex_.acquire(owner).get();
  Visitor waiter{elsewhere_, 1h};
  auto inner = mutex_.try_acquire(owner).get();
  ASSERT_TRUE(inner);
  EXPECT_EQ(inner->token(), outer.token());
  EXPECT_EQ(inner->release().get(), (ReleaseOutcome{Kind::still_held, 1}));
  EXPECT_TRUE(waiter.waits());
  EXPECT_EQ(outer.release().get().kind, Kind::released);
  EXPECT_TRUE(waiter.in());
}

TEST_F(FairOwner, SecondWaitOfAnOwnerEntersTheHoldOfTheFirst) {
  const Owner owner;
  auto held = elsewhere_.acquire().get();
  std::optional<Held> first;
  std::optional<Held> second;
  const auto wait = [&](std::optional<Held>& into) -> Task<void> {
    auto acquiring = mutex_.acquire(owner);
    into = co_await acquiring;
  };
  spawn(wait(first));
  spawn(wait(second));
  ASSERT_EQ(queue().size(), 1U);
  EXPECT_EQ(queue().front(), owner.id().text);
  held.release().get();
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->owner(), owner.id());
  EXPECT_EQ(second->entries(), 2U);
  EXPECT_TRUE(second->valid());
}

TEST_F(FairOwner, InfoShowsWhoIsInAndWhoWaitsInTheirOrder) {
  FairMutex labelled{line_, "stock", {.label = "the day shift"}};
  const auto held = labelled.acquire().get();
  clock_.advance(5s);
  EXPECT_FALSE(java_acquire(java_).is_null());
  Visitor visitor{labelled, 1h};
  const LockInfo info = elsewhere_.info().get();
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].owner, held.owner());
  EXPECT_EQ(info.holders[0].held, 5s);
  EXPECT_EQ(info.holders[0].data.label, "the day shift");
  EXPECT_EQ(info.token, held.token());
  ASSERT_EQ(info.waiters.size(), 2U);
  EXPECT_EQ(info.waiters[0].owner.text, java_);
  EXPECT_EQ(info.waiters[0].data, HolderData{});
  EXPECT_EQ(info.waiters[1].owner.text, queue().back());
  EXPECT_EQ(info.waiters[1].data.label, "the day shift");
}

TEST_F(FairOwner, ScopedLockTakesTwo) {
  FairMutex till{line_, "till"};
  {
    const std::scoped_lock both{mutex_, till};
    EXPECT_TRUE(exists("stock"));
    EXPECT_TRUE(exists("till"));
  }
  EXPECT_FALSE(exists("stock"));
  EXPECT_FALSE(exists("till"));
}

TEST_F(FairOwner, ThreadEntersAgainAndOthersDoNot) {
  mutex_.lock();
  EXPECT_TRUE(mutex_.try_lock());
  std::jthread{[&] {
    EXPECT_FALSE(mutex_.try_lock());
    EXPECT_THROW(mutex_.unlock(), Error);
  }}.join();
  mutex_.unlock();
  EXPECT_TRUE(exists("stock"));
  mutex_.unlock();
  EXPECT_FALSE(exists("stock"));
  EXPECT_THROW(mutex_.unlock(), Error);
}

TEST_F(FairOwner, WatchedHoldLastsAndIsToldWhenItIsGone) {
  auto held = mutex_.acquire().get();
  clock_.advance(10min);
  EXPECT_TRUE(held.valid());
  std::optional<LostCause> told;
  held.on_lost([&](LostCause cause) { told = cause; });
  store_->run({"DEL", "stock"}).get();
  clock_.advance(10s);
  EXPECT_EQ(told, LostCause::taken);
}

TEST_F(FairOwner, NameOrLeaseOutOfRangeIsRefused) {
  EXPECT_THROW((FairMutex{line_, ""}), Error);
  EXPECT_THROW((FairMutex{line_, "stock", {.lease = 5ms}}), Error);
  EXPECT_THROW((FairMutex{line_, "stock", {.lease = 1s, .margin = 2s}}), Error);
}

}  // namespace
}  // namespace sluice
