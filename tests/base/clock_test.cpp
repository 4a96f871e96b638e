#include "sluice/clock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "support/thread_sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(VirtualClock, StandsStillUntilItIsMoved) {
  VirtualClock clock{WallTime{1s}};
  const auto steady = clock.steady();
  EXPECT_EQ(clock.steady(), steady);
  EXPECT_EQ(clock.wall(), WallTime{1s});

  clock.advance(250ms);
  EXPECT_EQ(clock.steady(), steady + 250ms);
  EXPECT_EQ(clock.wall(), WallTime{1250ms});
}

TEST(VirtualClock, StepsBelowAMicrosecondAddUp) {
  VirtualClock clock{WallTime{}};
  for (int i = 0; i < 1000; ++i) clock.advance(500ns);
  EXPECT_EQ(clock.wall(), WallTime{500us});
}

TEST(VirtualClock, JumpsOfTheWallLeaveTheSteadyClockAndItsTimersAlone) {
  VirtualClock clock{WallTime{}};
  const auto steady = clock.steady();
  bool fired = false;
  clock.after(1s, [&] { fired = true; });

  clock.jump_wall(24h);
  EXPECT_EQ(clock.wall(), WallTime{24h});
  EXPECT_EQ(clock.steady(), steady);
  EXPECT_FALSE(fired);
  clock.jump_wall(-25h);
  EXPECT_EQ(clock.wall(), WallTime{-1h});

  clock.advance(1s);
  EXPECT_TRUE(fired);
  EXPECT_EQ(clock.wall(), WallTime{-1h + 1s});
}

TEST(VirtualClock, FiresInOrderOfTimeThenOfSetting) {
  VirtualClock clock;
  std::string order;
  clock.after(2s, [&] { order += 'c'; });
  clock.after(1s, [&] { order += 'a'; });
  clock.after(1s, [&] { order += 'b'; });
  clock.after(3s, [&] { order += 'd'; });

  clock.advance(2s);
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(clock.pending_timers(), 1U);
}

TEST(VirtualClock, ATimerSeesItsOwnTimeAndMaySetAnother) {
  VirtualClock clock;
  const auto start = clock.steady();
  std::vector<SteadyTime::duration> seen;
  std::function<void()> tick = [&] {
    seen.push_back(clock.steady() - start);
    clock.after(1s, tick);
  };
  clock.after(1s, tick);

  clock.advance(3500ms);
  EXPECT_EQ(seen, (std::vector<SteadyTime::duration>{1s, 2s, 3s}));
  EXPECT_EQ(clock.steady(), start + 3500ms);
}

TEST(VirtualClock, ACancelledTimerDoesNotFire) {
  VirtualClock clock;
  bool fired = false;
  const auto timer = clock.after(1s, [&] { fired = true; });
  EXPECT_TRUE(clock.cancel(timer));
  EXPECT_FALSE(clock.cancel(timer));
  clock.advance(1h);
  EXPECT_FALSE(fired);
}

TEST(VirtualClock, ATimerOfThePastFiresWithTheNextStep) {
  VirtualClock clock;
  const auto now = clock.steady();
  SteadyTime fired_at{};
  clock.at(now - 1h, [&] { fired_at = clock.steady(); });
  clock.advance(0s);
  EXPECT_EQ(fired_at, now);  // time does not run backwards
}

TEST(Clock, AWaitPastTheEndOfTimeIsOneWithoutEnd) {
  VirtualClock clock;
  EXPECT_EQ(Clock::add(clock.steady(), std::chrono::nanoseconds::max()), SteadyTime::max());
  EXPECT_EQ(Clock::add(clock.steady(), std::chrono::milliseconds::max()), SteadyTime::max());
  EXPECT_EQ(Clock::add(clock.steady(), std::chrono::hours::max()), SteadyTime::max());
  EXPECT_EQ(Clock::add(SteadyTime::max(), 1ns), SteadyTime::max());
  EXPECT_EQ(Clock::add(SteadyTime::min(), 1s), SteadyTime::min() + 1s);
  EXPECT_EQ(Clock::add(SteadyTime::min(), std::chrono::hours::max()), SteadyTime::max());
  EXPECT_EQ(Clock::add(clock.steady(), 1s), clock.steady() + 1s);
  bool fired = false;
  clock.after(std::chrono::nanoseconds::max(), [&] { fired = true; });
  clock.advance(1h);
  EXPECT_FALSE(fired);
}

TEST(SystemClock, FiresNotBeforeItsTimeAndInOrder) {
  Clock& clock = system_clock();
  const auto start = clock.steady();
  std::binary_semaphore done{0};
  std::string order;  // only the clock's thread writes it
  SteadyTime first{};
  clock.at(start + 20ms, [&] {
    order += 'b';
    done.release();
  });
  clock.at(start + 10ms, [&] {
    order += 'a';
    first = clock.steady();
  });
  done.acquire();
  EXPECT_EQ(order, "ab");
  EXPECT_GE(first, start + 10ms);
  EXPECT_GE(clock.steady(), start + 20ms);
}

TEST(SystemClock, CancelsATimerThatHasNotFired) {
  Clock& clock = system_clock();
  const auto timer = clock.after(1h, [] { ADD_FAILURE() << "fired an hour early"; });
  EXPECT_TRUE(clock.cancel(timer));
  EXPECT_FALSE(clock.cancel(timer));
  EXPECT_FALSE(clock.cancel(0)) << "of a timer whose at() has thrown: it would wait for ever";
}

TEST(SystemClock, CancelWaitsForACallbackThatRuns) {
  Clock& clock = system_clock();
  std::binary_semaphore entered{0};
  std::binary_semaphore go_on{0};
  std::atomic<bool> left{false};
  const auto timer = clock.after(0s, [&] {
    entered.release();
    go_on.acquire();
    left = true;
  });
  entered.acquire();
  std::jthread release{[&] { go_on.release(); }};
  EXPECT_FALSE(clock.cancel(timer));
  EXPECT_TRUE(left);  // what the callback uses may be destroyed now
}

TEST(SystemClock, ACallbackMayCancelItself) {
  Clock& clock = system_clock();
  std::binary_semaphore done{0};
  std::atomic<Clock::TimerId> own{0};
  std::binary_semaphore known{0};
  bool cancelled = true;
  own = clock.after(0s, [&] {
    known.acquire();
    cancelled = clock.cancel(own);
    done.release();
  });
  known.release();
  done.acquire();
  EXPECT_FALSE(cancelled);
}

TEST(SystemClock, WallTimeIsThatOfTheMachine) {
  const auto before = std::chrono::system_clock::now();
  const auto wall = system_clock().wall();
  EXPECT_GE(wall, std::chrono::floor<std::chrono::microseconds>(before));
  EXPECT_LE(wall, std::chrono::system_clock::now());
}

#ifndef SLUICE_THREAD_SANITIZER  // it starts no threads in the child of a process that had some
TEST(SystemClock, ChildSetsTimersWhileItsParentWaitsForOne) {
  system_clock().after(1h, [] {});  // its thread sleeps on a condition that the child inherits
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int> fired{0};
    for (int i = 3; i > 0; --i)
      system_clock().after(std::chrono::milliseconds{i}, [&] { fired.fetch_add(1); });
    ::alarm(10);
    while (fired.load() < 3) std::this_thread::yield();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace sluice
