#include "front/login_throttle.hpp"

#include <gtest/gtest.h>

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;

TEST(LoginThrottle, WaitsLongerWithEachFailureAndForgets) {
  front::LoginThrottle throttle;
  SteadyTime now{};
  for (int i = 0; i < 5; ++i) throttle.note_failure("a", now);
  EXPECT_EQ(throttle.wait_of("a", now), 0ms) << "a mistake or two cost nothing";
  throttle.note_failure("a", now);
  EXPECT_EQ(throttle.wait_of("a", now), 100ms);
  EXPECT_EQ(throttle.wait_of("b", now), 0ms);
  throttle.note_failure("a", now);
  EXPECT_EQ(throttle.wait_of("a", now), 200ms);
  for (int i = 0; i < 1000; ++i) throttle.note_failure("a", now);
  EXPECT_EQ(throttle.wait_of("a", now), front::LoginThrottle::longest);
  EXPECT_EQ(throttle.wait_of("a", now + 9s), front::LoginThrottle::longest);
  EXPECT_EQ(throttle.wait_of("a", now + 40s), 0ms);
  EXPECT_EQ(throttle.wait_of("a", now + std::chrono::years{1}), 0ms);
}

TEST(LoginThrottle, KnowsSoManyAddressesAndNoMore) {
  front::LoginThrottle throttle;
  SteadyTime now{};
  for (int i = 0; i < 6; ++i) throttle.note_failure("first", now);
  for (std::size_t i = 1; i < front::LoginThrottle::most_addresses; ++i)
    throttle.note_failure(std::to_string(i), now + 1ms);
  EXPECT_EQ(throttle.wait_of("first", now), 100ms);
  throttle.note_failure("one more", now + 1ms);
  EXPECT_EQ(throttle.wait_of("first", now), 0ms) << "the oldest made room";
}

TEST(LoginThrottle, WhoFailsAgainIsTheLatest) {
  front::LoginThrottle throttle;
  SteadyTime now{};
  for (const auto* const address : {"early", "late", "early"})
    for (int i = 0; i < 6; ++i) throttle.note_failure(address, now);
  for (std::size_t i = 1; i < front::LoginThrottle::most_addresses; ++i)
    throttle.note_failure(std::to_string(i), now);
  EXPECT_EQ(throttle.wait_of("late", now), 0ms);
  EXPECT_GT(throttle.wait_of("early", now), 0ms);
}

}  // namespace
}  // namespace sluice::proxy::flow
