// Holds of a Mutex that hang on no process, in virtual time.
#include <gtest/gtest.h>

#include "engine/embedded_store.hpp"
#include "lock/mutex/leased_lock.hpp"
#include "sluice/mutex.hpp"

namespace sluice::lock {
namespace {

using namespace std::chrono_literals;

class LeasedLockSim : public testing::Test {
 protected:
  LeaseWish wish(std::string_view name) const {
    return {.owner = owner_of_wish(name), .lease = 30s, .label = "a test"};
  }

  VirtualClock clock_;
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  LeasedLock lock_{*store_, "stock"};
};

TEST_F(LeasedLockSim, AWishHasOneHoldUntilItEnds) {
  const auto first = lock_.try_acquire(wish("ann")).get();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->is_new);
  clock_.advance(29s);
  const auto again = lock_.try_acquire(wish("ann")).get();
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->is_new);
  EXPECT_EQ(again->token, first->token);
  clock_.advance(29s);
  EXPECT_EQ(lock_.try_acquire(wish("bob")).get().error().left, 1s)
      << "a repeat begins the lease anew";
  clock_.advance(1s + 1ms);
  const auto bob = lock_.try_acquire(wish("bob")).get();
  ASSERT_TRUE(bob);
  EXPECT_GT(bob->token, first->token);
}

TEST_F(LeasedLockSim, ItIsRenewedAndReleasedByItsOwnersNameAlone) {
  const auto held = lock_.try_acquire(wish("ann")).get();
  LeasedLock elsewhere{*store_, "stock"};
  clock_.advance(20s);
  EXPECT_EQ(elsewhere.renew(owner_of_wish("ann"), 30s).get(), held->token);
  clock_.advance(20s);
  EXPECT_TRUE(elsewhere.release(owner_of_wish("ann")).get());
  EXPECT_FALSE(elsewhere.release(owner_of_wish("ann")).get());
  EXPECT_FALSE(elsewhere.renew(owner_of_wish("ann"), 30s).get());
}

TEST_F(LeasedLockSim, LK12_AHoldOfThreeDaysKeepsItsToken) {
  const auto held = lock_.try_acquire(wish("ann")).get();
  for (int hour = 0; hour < 72; ++hour) {
    ASSERT_TRUE(lock_.renew(owner_of_wish("ann"), 2h).get());
    clock_.advance(1h);
  }
  EXPECT_EQ(lock_.renew(owner_of_wish("ann"), 2h).get(), held->token);
}

// Its client has gone, and asked again at another process: what that one was told stays.
TEST_F(LeasedLockSim, AHoldThatWasAskedForAgainIsNotWithdrawn) {
  const auto first = lock_.try_acquire(wish("ann")).get();
  ASSERT_TRUE(first);
  ASSERT_TRUE(lock_.try_acquire(wish("ann")).get());
  EXPECT_FALSE(lock_.withdraw(owner_of_wish("ann"), first->token).get());
  EXPECT_FALSE(lock_.try_acquire(wish("bob")).get());
  lock_.release(owner_of_wish("ann")).get();
  const auto carl = lock_.try_acquire(wish("carl")).get();
  ASSERT_TRUE(carl);
  EXPECT_FALSE(lock_.withdraw(owner_of_wish("ann"), carl->token).get()) << "another's";
  EXPECT_TRUE(lock_.withdraw(owner_of_wish("carl"), carl->token).get());
  EXPECT_TRUE(lock_.try_acquire(wish("bob")).get());
}

// A process stood still between its grant and its withdrawal. Meanwhile its client was told of the
// hold at another process, ended it, and holds the lock anew by the same wish.
TEST_F(LeasedLockSim, AWithdrawalThatComesLateTouchesNoLaterHoldOfTheSameWish) {
  const auto first = lock_.try_acquire(wish("ann")).get();
  ASSERT_TRUE(first);
  lock_.release(owner_of_wish("ann")).get();
  const auto later = lock_.try_acquire(wish("ann")).get();
  ASSERT_TRUE(later);
  EXPECT_FALSE(lock_.withdraw(owner_of_wish("ann"), first->token).get());
  EXPECT_FALSE(lock_.try_acquire(wish("bob")).get()) << "two would hold it";
  EXPECT_TRUE(lock_.withdraw(owner_of_wish("ann"), later->token).get());
}

TEST_F(LeasedLockSim, ItsLeaseAndThatOfAMutexKeepEachOtherOut) {
  Mutex mutex{*store_, "stock"};
  auto held = mutex.try_acquire().get();
  const auto refused = lock_.try_acquire(wish("ann")).get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().left, 30s);
  held.reset();
  ASSERT_TRUE(lock_.try_acquire(wish("ann")).get());
  EXPECT_FALSE(mutex.try_acquire().get());
  const auto info = mutex.info().get();
  ASSERT_EQ(info.holders.size(), 1);
  EXPECT_EQ(info.holders[0].owner, owner_of_wish("ann"));
  EXPECT_EQ(info.holders[0].data.label, "a test");
  clock_.advance(30s + 1ms);
  EXPECT_TRUE(mutex.try_acquire().get());
}

TEST(OwnerOfWish, IsAnOwnerAsOthersAre) {
  const auto owner = owner_of_wish("ann").text;
  EXPECT_EQ(owner_of_wish("ann").text, owner);
  EXPECT_NE(owner_of_wish("bob").text, owner);
  EXPECT_TRUE(is_owner_of_wish(owner)) << owner;
  EXPECT_EQ(owner.size(), 38);
  for (const auto* other : {"", "x", "5b1c0de0-0000-4000-8000-000000000000:2"})
    EXPECT_FALSE(is_owner_of_wish(other)) << other;
}

// Processes of other versions share it.
TEST(OwnerOfWish, IsTheSameInEachVersion) {
  const OwnerId owner = owner_of_wish("ann");
  EXPECT_TRUE(owner.text.starts_with("49915e0d-7d4b-802e-b017-d010bc1c0e83")) << owner.text;
  EXPECT_TRUE(is_owner_of_wish(owner.text));
}

}  // namespace
}  // namespace sluice::lock
