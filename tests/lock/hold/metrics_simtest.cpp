/// What is counted, and how often.
#include "lock/virtual_lock.hpp"

namespace sluice {
namespace {

/// How much a counter or histogram has grown since it was made.
class Growth {
 public:
  explicit Growth(const std::atomic<std::uint64_t>& counter) : counter_(counter) {}
  std::uint64_t operator()() const { return counter_ - before_; }

 private:
  const std::atomic<std::uint64_t>& counter_;
  const std::uint64_t before_ = counter_;
};

class Observed {
 public:
  explicit Observed(const Histogram& histogram) : histogram_(histogram) {}
  std::uint64_t times() const { return histogram_.count() - times_; }
  std::chrono::nanoseconds sum() const { return histogram_.sum() - sum_; }

 private:
  const Histogram& histogram_;
  const std::uint64_t times_ = histogram_.count();
  const std::chrono::nanoseconds sum_ = histogram_.sum();
};

class LockMetrics : public VirtualLock {
 protected:
  const Growth acquired_{metrics().lock_acquired};
  const Growth refused_{metrics().lock_refused};
  const Growth handed_on_{metrics().lock_handed_on};
  const Growth handed_over_{metrics().lock_handed_over};
  const Growth late_{metrics().lock_late};
  const Growth near_misses_{metrics().lock_near_misses};
  const Growth lost_{metrics().lock_lost};
  const Growth renewals_{metrics().lock_renewals};
  const Growth renewal_failures_{metrics().lock_renewal_failures};
  const Growth release_failures_{metrics().lock_release_failures};
  const Observed wait_{metrics().lock_wait};
  const Observed hold_{metrics().lock_hold};
  const Observed lag_{metrics().lock_renewal_lag};

  Mutex here_{line_, "stock", {.lease = 30s}};
  Mutex there_{far_, "stock", {.lease = 30s}};
};

TEST_F(LockMetrics, AHoldThatNothingHappensTo) {
  auto held = here_.acquire().get();
  clock_.advance(5s);
  held.release().get();
  EXPECT_EQ(acquired_(), 1U);
  EXPECT_EQ(wait_.times(), 1U);
  EXPECT_EQ(wait_.sum(), 0s);
  EXPECT_EQ(hold_.times(), 1U);
  EXPECT_EQ(hold_.sum(), 5s);
  EXPECT_EQ(refused_() + lost_() + late_() + renewals_() + near_misses_(), 0U);
}

TEST_F(LockMetrics, AWaitIsMeasuredWhenItGetsIn) {
  auto held = there_.acquire().get();
  Visitor waiter{here_, 1h};
  clock_.advance(3s);
  held.release().get();
  ASSERT_TRUE(waiter.in());
  EXPECT_EQ(wait_.times(), 2U);
  EXPECT_EQ(wait_.sum(), 3s);
  EXPECT_EQ(handed_over_(), 1U);
  EXPECT_EQ(handed_on_(), 0U);
  EXPECT_EQ(acquired_(), 2U);
}

TEST_F(LockMetrics, ARefusalIsNoWait) {
  const auto held = there_.acquire().get();
  EXPECT_FALSE(here_.try_acquire().get());
  const Visitor waiter{here_, 2s};
  clock_.advance(3s);
  ASSERT_FALSE(waiter.waits());
  EXPECT_EQ(refused_(), 2U);
  EXPECT_EQ(wait_.times(), 1U) << "of the holder";
}

TEST_F(LockMetrics, HandedOnWithinTheProcess) {
  auto held = here_.acquire().get();
  Visitor first{here_, 1h};
  Visitor second{here_, 1h};
  held.release().get();         // its turn ends with it: the server is asked
  first.held->release().get();  // and from here on it is not
  ASSERT_TRUE(second.in());
  EXPECT_EQ(handed_on_(), 1U);
  EXPECT_EQ(handed_over_(), 0U);
  EXPECT_EQ(hold_.times(), 2U);
}

TEST_F(LockMetrics, RenewalsAndHowLateTheyWere) {
  const auto held = here_.acquire().get();
  clock_.advance(31s);
  EXPECT_EQ(renewals_(), 4U);
  EXPECT_EQ(lag_.times(), 4U);
  EXPECT_EQ(lag_.sum(), 0s);
  fail_next("lock/mutex/renew", Fault::refused);
  clock_.advance(8s);  // fails; tried again later
  EXPECT_EQ(renewal_failures_(), 1U);
  clock_.advance(5s);
  EXPECT_EQ(renewals_(), 5U);
  EXPECT_GT(lag_.sum(), 1s) << "counted from when it was due at first";
  EXPECT_EQ(near_misses_(), 0U);
  EXPECT_EQ(lost_(), 0U);
}

TEST_F(LockMetrics, ANearMissIsARiskThatPassed) {
  const auto held = here_.acquire().get();
  fail_all("lock/mutex/renew", Fault::refused);
  clock_.advance(25s);
  EXPECT_EQ(near_misses_(), 0U);
  heal();
  clock_.advance(4s);
  EXPECT_EQ(near_misses_(), 1U);
  EXPECT_EQ(lost_(), 0U);
  EXPECT_TRUE(held.valid());
}

TEST_F(LockMetrics, ALossIsCountedOnceAndIsNoHoldThatWasReleased) {
  auto held = here_.acquire().get();
  store_->run({"DEL", "stock"}).get();
  clock_.advance(11s);
  EXPECT_EQ(lost_(), 1U);
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_EQ(lost_(), 1U);
  EXPECT_EQ(hold_.times(), 0U);
  EXPECT_EQ(near_misses_(), 0U);
}

TEST_F(LockMetrics, ALossThatOnlyTheReleaseFindsIsCounted) {
  auto held = here_.acquire().get();
  store_->run({"DEL", "stock"}).get();
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_EQ(lost_(), 1U);
}

TEST_F(LockMetrics, AGrantThatComesWhenItsLeaseIsOverIsLate) {
  fail_next("lock/mutex/acquire", Fault::reply_late);
  const Visitor visitor{here_, 0ms};
  clock_.advance(31s);
  line_.let_go();
  EXPECT_TRUE(visitor.failed());
  EXPECT_EQ(late_(), 1U);
  EXPECT_EQ(acquired_(), 0U);
}

TEST_F(LockMetrics, AWaiterAsksAgainAfterALateGrant) {
  fail_next("lock/mutex/acquire", Fault::reply_late);
  const Visitor visitor{here_, 1h};
  clock_.advance(31s);
  line_.let_go();
  clock_.advance(1s);
  ASSERT_TRUE(visitor.in());
  EXPECT_GT(visitor.held->valid_for(), 28s) << "the new grant counts, not the late one";
  EXPECT_EQ(late_(), 1U);
  EXPECT_EQ(acquired_(), 1U);
}

TEST_F(LockMetrics, AReleaseThatNobodyWaitedForAndFailedIsCounted) {
  auto held = here_.acquire().get();
  fail_all("lock/mutex/release", Fault::cut_off);
  held = {};
  EXPECT_EQ(release_failures_(), 1U);
}

TEST_F(LockMetrics, EveryRowOfTheTablesHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (const auto& row : metrics_table()) names.push_back(row.name);
  for (const auto& row : histograms_table()) names.push_back(row.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  for (const auto name : names) EXPECT_TRUE(name.starts_with("sluice_")) << name;
}

}  // namespace
}  // namespace sluice
