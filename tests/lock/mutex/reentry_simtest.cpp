/// Owners, entries, and what stands in Redis meanwhile.
#include <unistd.h>

#include "lock/virtual_lock.hpp"
#include "sluice/lock_info.hpp"

namespace sluice {
namespace {

using Reentry = VirtualLock;

TEST_F(Reentry, L04_EntriesCountZeroOneTwoOneZero) {
  Mutex mutex{line_, "stock"};
  const Owner owner;
  EXPECT_EQ(field("stock", owner.id().text), "none");
  auto outer = mutex.acquire(owner).get();
  EXPECT_EQ(field("stock", owner.id().text), "1");
  auto inner = mutex.try_acquire(owner).get();
  ASSERT_TRUE(inner);
  EXPECT_EQ(field("stock", owner.id().text), "2");
  EXPECT_EQ(inner->token(), outer.token()) << "a token belongs to a hold, not to an entry";
  EXPECT_EQ(outer.entries(), 2U);
  EXPECT_EQ(outer.release().get(), (ReleaseOutcome{Kind::still_held, 1}));
  EXPECT_EQ(field("stock", owner.id().text), "1");
  EXPECT_TRUE(inner->valid());
  EXPECT_FALSE(outer.valid()) << "this entry is over";
  EXPECT_EQ(inner->release().get().kind, Kind::released);
  EXPECT_FALSE(exists("stock"));
  EXPECT_EQ(inner->release().get().kind, Kind::not_held);
}

TEST_F(Reentry, L05_LeaseIsProlongedByEnteringAndLeaving) {
  Mutex mutex{line_, "stock", {.lease = 10s, .watchdog = false}};
  const Owner owner;
  auto first = mutex.acquire(owner).get();
  auto second = mutex.acquire(owner).get();
  auto third = mutex.acquire(owner).get();
  clock_.advance(5s);
  third.release().get();
  second.release().get();
  EXPECT_EQ(ttl("stock"), 10s);
  clock_.advance(9s);
  EXPECT_TRUE(first.valid());
}

TEST_F(Reentry, OwnersExcludeEachOther) {
  Mutex mutex{line_, "stock"};
  const Owner one;
  const Owner two;
  EXPECT_NE(one.id(), two.id());
  const auto held = mutex.acquire(one).get();
  EXPECT_FALSE(mutex.try_acquire(two).get());
  EXPECT_FALSE(mutex.try_acquire().get()) << "nobody in particular is somebody else";
}

TEST_F(Reentry, OwnerEntersThroughAnotherMutexOfThatName) {
  Mutex here{line_, "stock"};
  Mutex there{line_, "stock"};
  Mutex elsewhere{line_, "till"};
  const Owner owner;
  const auto held = here.acquire(owner).get();
  EXPECT_TRUE(there.try_acquire(owner).get());
  EXPECT_EQ(elsewhere.acquire(owner).get().entries(), 1U);
}

TEST_F(Reentry, OwnerThatLostItsHoldGetsANewOne) {
  Mutex mutex{line_, "stock"};
  const Owner owner;
  auto lost = mutex.acquire(owner).get();
  mutex.force_release().get();
  auto fresh = mutex.acquire(owner).get();
  EXPECT_FALSE(lost.valid());
  EXPECT_TRUE(lost.lost().stop_requested());
  EXPECT_EQ(fresh.token().value, lost.token().value + 1);
  EXPECT_EQ(fresh.entries(), 1U);
  EXPECT_EQ(lost.release().get().kind, Kind::not_held);
  EXPECT_TRUE(fresh.valid());
}

TEST_F(Reentry, HolderIsShown) {
  Mutex mutex{line_, "stock", {.label = "till 3 "}};
  EXPECT_TRUE(mutex.info().get().holders.empty());
  const Owner owner;
  const auto held = mutex.acquire(owner).get();
  const LockInfo info = mutex.info().get();
  ASSERT_EQ(info.holders.size(), 1U);
  const auto& holder = info.holders.front();
  EXPECT_EQ(holder.owner, owner.id());
  EXPECT_EQ(holder.entries, 1U);
  EXPECT_EQ(holder.left, 30s);
  EXPECT_EQ(holder.data.pid, ::getpid());
  EXPECT_EQ(holder.data.actor, "-");
  EXPECT_EQ(holder.data.label, "till 3 ");
  EXPECT_EQ(info.token, held.token());
  EXPECT_TRUE(mutex.force_release().get());
  EXPECT_FALSE(mutex.force_release().get());
}

TEST_F(Reentry, NamesOfAnyBytesWork) {
  for (const std::string& name :
       {std::string{"nul \0 in it", 11}, std::string(100'000, 'x'), std::string{"{tag}x"},
        std::string{"\r\n$5\r\n"}, std::string{"снег"}}) {
    Mutex mutex{line_, name};
    auto held = mutex.acquire().get();
    EXPECT_TRUE(exists(name));
    EXPECT_FALSE(mutex.try_acquire().get());
    Visitor visitor{mutex, 1h};
    EXPECT_EQ(held.release().get().kind, Kind::released);
    EXPECT_TRUE(visitor.in());
  }
}

TEST_F(Reentry, BadNamesAndOptionsAreRefused) {
  EXPECT_THROW((Mutex{line_, ""}), Error);
  EXPECT_THROW((Mutex{line_, std::string((1 << 20) + 1, 'x')}), Error);
  EXPECT_THROW((Mutex{line_, "x", {.lease = 9ms}}), Error);
  EXPECT_THROW((Mutex{line_, "x", {.lease = 25h}}), Error);
  EXPECT_THROW((Mutex{line_, "x", {.lease = 1s, .margin = 1s}}), Error);
  EXPECT_THROW((Mutex{line_, "x", {.lease = 1s, .margin = -1ms}}), Error);
}

TEST_F(Reentry, KeyOfAnotherKindIsAnError) {
  Mutex mutex{line_, "stock"};
  store_->run({"SET", "stock", "text"}).get();
  try {
    (void)mutex.acquire().get();
    FAIL() << "acquired a string";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type);
  }
  EXPECT_EQ(store_->run({"GET", "stock"}).get().as_text(), "text");
}

}  // namespace
}  // namespace sluice
