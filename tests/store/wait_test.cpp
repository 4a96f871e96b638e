#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sluice/clock.hpp"
#include "sluice/task.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// Runs a wait in the background and keeps its outcome.
struct Observed {
  bool ended = false;
  bool in_time = false;
};

Task<void> observe(Completion& completion, Clock& clock, SteadyTime deadline, Observed& seen) {
  auto waiting = wait_until(completion, clock, deadline);
  seen.in_time = co_await waiting;
  seen.ended = true;
}

TEST(WaitUntil, EndsWithTheCompletion) {
  VirtualClock clock;
  Completion completion;
  Observed seen;
  spawn(observe(completion, clock, clock.steady() + 1s, seen));
  clock.advance(999ms);
  EXPECT_FALSE(seen.ended);
  completion.complete();
  EXPECT_TRUE(seen.ended);
  EXPECT_TRUE(seen.in_time);
  EXPECT_EQ(clock.pending_timers(), 0U);  // nothing is left behind
}

TEST(WaitUntil, EndsAtTheDeadline) {
  VirtualClock clock;
  Completion completion;
  Observed seen;
  spawn(observe(completion, clock, clock.steady() + 1s, seen));
  clock.advance(1s);
  EXPECT_TRUE(seen.ended);
  EXPECT_FALSE(seen.in_time);
  EXPECT_FALSE(completion.complete());  // too late: the deadline was first
}

TEST(WaitUntil, LooksBeforeItWaits) {
  VirtualClock clock;
  Completion complete;
  complete.complete();
  EXPECT_TRUE(wait_until(complete, clock, clock.steady() - 1s).get());
  EXPECT_EQ(clock.pending_timers(), 0U);
}

TEST(WaitUntil, ADeadlineThatHasPassedNeedsNoTimer) {
  VirtualClock clock;
  Completion completion;
  EXPECT_FALSE(wait_until(completion, clock, clock.steady()).get());
  EXPECT_EQ(clock.pending_timers(), 0U);
}

TEST(WaitUntil, WithoutDeadlineSetsNoTimer) {
  VirtualClock clock;
  Completion completion;
  Observed seen;
  spawn(observe(completion, clock, SteadyTime::max(), seen));
  EXPECT_EQ(clock.pending_timers(), 0U);
  completion.complete();
  EXPECT_TRUE(seen.in_time);
}

TEST(WaitUntil, OnARealClockTheThreadIsWoken) {
  Completion completion;
  const auto deadline = system_clock().steady() + 5ms;
  EXPECT_FALSE(wait_until(completion, system_clock(), deadline).get());
  EXPECT_GE(system_clock().steady(), deadline);
}

// The deadline and the completion at the same moment, on two threads: whoever says it was first is
// believed by both.
TEST(WaitUntil, ACompletionAtTheDeadlineBelongsToOneSide) {
  for (int i = 0; i < 2000; ++i) {
    VirtualClock clock;
    Completion completion;
    std::atomic<bool> go{false};
    bool completed_here = false;
    std::jthread timer{[&] {
      while (!go) std::this_thread::yield();
      clock.advance(1s);
    }};
    std::jthread completer{[&] {
      while (!go) std::this_thread::yield();
      completed_here = completion.complete();
    }};
    const auto wait = [](Completion& awaited, Clock& time, std::atomic<bool>& start) -> Task<bool> {
      auto waiting = wait_until(awaited, time, time.steady() + 1s);
      start = true;
      co_return co_await waiting;
    };
    const bool in_time = wait(completion, clock, go).get();
    completer.join();
    EXPECT_EQ(in_time, completed_here);
    timer.join();
  }
}

TEST(SleepUntil, WakesAtTheTimeAndNotBefore) {
  VirtualClock clock;
  bool awake = false;
  const auto sleep = [](Clock& time, bool& flag) -> Task<void> {
    auto sleeping = sleep_until(time, time.steady() + 1s);
    co_await sleeping;
    flag = true;
  };
  spawn(sleep(clock, awake));
  clock.advance(999'999us);
  EXPECT_FALSE(awake);
  clock.advance(1us);
  EXPECT_TRUE(awake);
}

TEST(SleepUntil, TheTimeThatHasPassedIsNoSleep) {
  VirtualClock clock;
  sleep_until(clock, clock.steady()).get();
  sleep_until(clock, clock.steady() - 1h).get();
}

}  // namespace
}  // namespace sluice
