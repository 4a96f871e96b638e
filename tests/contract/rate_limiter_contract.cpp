// What RateLimiter promises on every Store, in real time.
#include <future>

#include "contract/stores.hpp"
#include "sluice/rate_limiter.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class RateLimiterContract : public test::StoreContract {};
SLUICE_EVERY_STORE(RateLimiterContract);
SLUICE_SHARDED_STORE(RateLimiterContract);

TEST_P(RateLimiterContract, GrantsTheRateAndNoMore) {
  RateLimiter limiter{store(), name("limiter"), {.rate = 5, .interval = 1h}};
  EXPECT_EQ(limiter.available().get(), 5);
  EXPECT_EQ(limiter.try_acquire(4).get()->left, 1);
  EXPECT_FALSE(limiter.try_acquire(2).get());
  EXPECT_TRUE(limiter.try_acquire().get());
  const auto refused = limiter.try_acquire(1, 20ms).get();
  ASSERT_FALSE(refused);
  EXPECT_GT(refused.error().retry_after, 59min);
  EXPECT_LE(refused.error().retry_after, 1h);
  EXPECT_EQ(limiter.available().get(), 0);
}

TEST_P(RateLimiterContract, PermitsComeBackAfterTheInterval) {
  RateLimiter limiter{store(), name("limiter"), {.rate = 2, .interval = 50ms}};
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 8; ++i) limiter.acquire().get();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 150ms);
}

TEST_P(RateLimiterContract, ThreadsShareTheRate) {
  RateLimiter limiter{store(), name("limiter"), {.rate = 40, .interval = 1h}};
  std::vector<std::future<int>> crew;
  for (int i = 0; i < 4; ++i)
    crew.push_back(std::async(std::launch::async, [&] {
      int granted = 0;
      for (int round = 0; round < 20; ++round) granted += limiter.try_acquire().get().has_value();
      return granted;
    }));
  int granted = 0;
  for (auto& thread : crew) granted += thread.get();
  EXPECT_EQ(granted, 40);
}

TEST_P(RateLimiterContract, WaitingThreadsAreAllServed) {
  RateLimiter limiter{store(), name("limiter"), {.rate = 3, .interval = 30ms}};
  std::vector<std::future<void>> crew;
  for (int i = 0; i < 4; ++i)
    crew.push_back(std::async(std::launch::async, [&] {
      for (int round = 0; round < 6; ++round) limiter.acquire().get();
    }));
  for (auto& thread : crew) {
    ASSERT_EQ(thread.wait_for(10s), std::future_status::ready);
    thread.get();
  }
}

TEST_P(RateLimiterContract, OtherNumbersAreAMismatchUntilTheyAreSet) {
  RateLimiter first{store(), name("limiter"), {.rate = 5, .interval = 1h}};
  RateLimiter second{store(), name("limiter"), {.rate = 6, .interval = 1h}};
  EXPECT_TRUE(first.try_set_rate().get());
  EXPECT_FALSE(second.try_set_rate().get());
  EXPECT_THROW((void)second.try_acquire().get(), Error);
  first.set_rate(6, 1h).get();
  EXPECT_EQ(first.try_acquire().get()->left, 5);
  EXPECT_EQ(second.try_acquire().get()->left, 4);
}

TEST_P(RateLimiterContract, ClientsHaveRatesOfTheirOwn) {
  const auto options = [](std::string client) {
    return RateLimiterOptions{
        .rate = 1, .interval = 1h, .kind = RateKind::per_client, .client = std::move(client)};
  };
  RateLimiter ann{store(), name("limiter"), options("ann")};
  RateLimiter bob{store(), name("limiter"), options("bob")};
  EXPECT_TRUE(ann.try_acquire().get());
  EXPECT_FALSE(ann.try_acquire().get());
  EXPECT_TRUE(bob.try_acquire().get());
}

}  // namespace
}  // namespace sluice
