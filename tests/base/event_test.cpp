#include "base/event.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(Event, IsSetOnceHoweverOftenItIsSet) {
  Event event;
  EXPECT_FALSE(event.is_set());
  event.set();
  event.set();
  EXPECT_TRUE(event.is_set());
  event.wait();  // returns at once, and does not reset
  EXPECT_TRUE(event.is_set());
  EXPECT_TRUE(event.take());
  EXPECT_FALSE(event.is_set());
  EXPECT_FALSE(event.take());
}

TEST(Event, WakesEverySleeper) {
  Event event;
  std::vector<std::jthread> sleepers;
  for (int i = 0; i < 4; ++i) sleepers.emplace_back([&] { event.wait(); });
  event.set();
  sleepers.clear();  // joins: hangs if one was forgotten
}

TEST(Event, GivesUpAtTheDeadline) {
  Event event;
  const auto deadline = system_clock().steady() + 5ms;
  EXPECT_FALSE(event.wait_until(deadline));
  EXPECT_GE(system_clock().steady(), deadline);
  event.set();
  EXPECT_TRUE(event.wait_until(deadline));
}

TEST(Event, ADeadlineBeforeTheBeginningOfTimeHasPassed) {
  Event event;
  EXPECT_FALSE(event.wait_until(SteadyTime::min()));
}

TEST(Event, ADeadlineAtTheEndOfTimeIsNone) {
  Event event;
  std::jthread setter{[&] { event.set(); }};
  EXPECT_TRUE(event.wait_until(SteadyTime::max()));
}

// What was written before set() is seen after wait() and take(): two threads hand a plain integer
// back and forth.
TEST(Event, CarriesWhatWasWrittenBefore) {
  Event ping;
  Event pong;
  int value = 0;
  constexpr int rounds = 2000;
  std::jthread other{[&] {
    for (int i = 0; i < rounds; ++i) {
      ping.wait();
      ping.reset();
      ++value;
      pong.set();
    }
  }};
  for (int i = 0; i < rounds; ++i) {
    ++value;
    ping.set();
    pong.wait();
    pong.reset();
  }
  other.join();
  EXPECT_EQ(value, 2 * rounds);
}

}  // namespace
}  // namespace sluice
