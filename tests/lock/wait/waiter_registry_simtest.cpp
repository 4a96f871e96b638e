/// Who waits behind a holder of its own process, and how the server comes to know.
#include <list>

#include "lock/virtual_lock.hpp"
#include "sluice/lock_info.hpp"

namespace sluice {
namespace {

class WaiterRegistry : public VirtualLock {
 protected:
  std::int64_t told() {
    return store_->run({"HLEN", "sluice_lock_waiters:{stock}"}).get().as_integer();
  }
  std::vector<std::string> labels() {
    std::vector<std::string> all;
    for (const auto& waiter : there_.info().get().waiters) all.push_back(waiter.data.label);
    return all;
  }
  using Labels = std::vector<std::string>;

  /// Waits until it is in, its patience is over, or the test.
  Visitor& wait(Mutex& mutex, std::chrono::milliseconds patience = 1h) {
    return crowd_.emplace_back(mutex, patience, stop_.get_token());
  }
  void TearDown() override { stop_.request_stop(); }

  Mutex here_{line_, "stock", {.label = "here"}};
  Mutex also_here_{line_, "stock", {.label = "also here"}};
  Mutex there_{far_, "stock", {.label = "there"}};
  std::list<Visitor> crowd_;
  std::stop_source stop_;
};

TEST_F(WaiterRegistry, WhoeverWaitsForLongBehindItsOwnProcessIsKnownElsewhere) {
  auto held = here_.acquire().get();
  Visitor& waiter = wait(also_here_);
  EXPECT_EQ(labels(), Labels{}) << "the server knows nothing of it";
  clock_.advance(2s);
  EXPECT_EQ(labels(), Labels{"also here"});
  held.release().get();
  EXPECT_TRUE(waiter.in());
  EXPECT_EQ(labels(), Labels{}) << "and forgets it at once";
  EXPECT_FALSE(exists("sluice_lock_waiters:{stock}"));
}

TEST_F(WaiterRegistry, ShortWaitsTellNothing) {
  for (int i = 0; i < 10; ++i) {
    auto held = here_.acquire().get();
    Visitor& waiter = wait(also_here_);
    clock_.advance(900ms);
    held.release().get();
    ASSERT_TRUE(waiter.in());
    waiter.held.reset();
  }
  EXPECT_EQ(line_.executed("lock/wait/report_waiters"), 0U);
}

TEST_F(WaiterRegistry, NobodyWaitsTwice) {
  auto held = there_.acquire().get();
  wait(here_);
  wait(also_here_);
  EXPECT_EQ(labels(), Labels{"here"}) << "the first stands in the queue for its process";
  clock_.advance(2s);
  EXPECT_EQ(told(), 2);
  EXPECT_EQ(labels(), (Labels{"here", "also here"}));
}

TEST_F(WaiterRegistry, APlaceInTheQueueIsNotThatOfOneWhoHasLeft) {
  auto held = there_.acquire().get();
  const Visitor& first = wait(here_, 3s);
  wait(also_here_);
  clock_.advance(4s);
  ASSERT_FALSE(first.waits());
  EXPECT_EQ(labels(), Labels{"also here"});
}

TEST_F(WaiterRegistry, OneWhoGivesUpIsTakenBack) {
  auto held = here_.acquire().get();
  const Visitor& waiter = wait(also_here_, 5s);
  clock_.advance(4s);
  EXPECT_EQ(told(), 1);
  clock_.advance(2s);
  EXPECT_FALSE(waiter.waits());
  EXPECT_EQ(told(), 0);
}

TEST_F(WaiterRegistry, AWaitIsToldAgainBeforeItsWordIsOld) {
  auto held = here_.acquire().get();
  wait(also_here_);
  for (int minute = 0; minute < 5; ++minute) {
    clock_.advance(60s);
    EXPECT_EQ(labels(), Labels{"also here"});
    EXPECT_GT(ttl("sluice_lock_waiters:{stock}"), 30s);
  }
  EXPECT_LE(line_.executed("lock/wait/report_waiters"), 16U);
}

TEST_F(WaiterRegistry, TheWordOfADeadProcessIsForgottenThoughOthersWait) {
  auto held = here_.acquire().get();
  store_
      ->run({"HSET", "sluice_lock_waiters:{stock}", "dead",
             std::to_string(clock_.wall().time_since_epoch().count() / 1000) +
                 " 0 inbox ghost h 7 t8 ghost"})
      .get();
  wait(also_here_);
  clock_.advance(30s);
  EXPECT_EQ(labels(), (Labels{"ghost", "also here"}));
  clock_.advance(31s);
  EXPECT_EQ(labels(), Labels{"also here"}) << "not shown";
  clock_.advance(60s);
  EXPECT_EQ(told(), 1) << "and not kept";
}

TEST_F(WaiterRegistry, AThousandWaitsTravelTogether) {
  auto held = here_.acquire().get();
  for (int i = 0; i < 1001; ++i) wait(also_here_);
  clock_.advance(2s);
  EXPECT_EQ(line_.executed("lock/wait/report_waiters"), 1U) << "one batch";
  EXPECT_EQ(told(), 1000) << "no more than that, for people";
}

TEST_F(WaiterRegistry, AServerThatDoesNotAnswerStopsNobody) {
  auto held = here_.acquire().get();
  Visitor& waiter = wait(also_here_);
  fail_next("lock/wait/report_waiters", Fault::refused);
  clock_.advance(2s);
  EXPECT_EQ(told(), 0);
  clock_.advance(20s);
  EXPECT_EQ(told(), 1);
  held.release().get();
  EXPECT_TRUE(waiter.in());
}

TEST_F(WaiterRegistry, NobodyWaitsNoTimerTicks) {
  { auto held = here_.acquire().get(); }
  const auto timers = clock_.pending_timers();
  {
    auto held = here_.acquire().get();
    Visitor& waiter = wait(also_here_);
    held.release().get();
    waiter.held.reset();
  }
  clock_.advance(3s);
  EXPECT_LE(clock_.pending_timers(), timers);
}

}  // namespace
}  // namespace sluice
