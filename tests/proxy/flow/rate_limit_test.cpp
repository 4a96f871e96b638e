#include "proxy/flow/rate_limit.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;

const SteadyTime start{1h};
constexpr Rate hundred{.amount = 100, .period = 1s, .burst = 50};

/// How many of single requests, asked at once, are served at once.
std::size_t served(auto& account, const auto& rate, SteadyTime now, std::size_t asked = 1000) {
  std::size_t count = 0;
  for (; asked > 0; --asked) count += account.take(rate, {1}, now, 0s) ? 1 : 0;
  return count;
}

TEST(TokenBucket, ServesTheBurstAndThenTheRate) {
  TokenBucket bucket;
  EXPECT_EQ(served(bucket, hundred, start), 50U);
  EXPECT_EQ(served(bucket, hundred, start + 9ms), 0U);
  EXPECT_EQ(served(bucket, hundred, start + 100ms), 10U);
  EXPECT_EQ(served(bucket, hundred, start + 1h), 50U) << "it holds no more than the burst";
}

TEST(TokenBucket, WhoWaitsGetsAPlaceInTheQueue) {
  TokenBucket bucket;
  EXPECT_EQ(served(bucket, hundred, start), 50U);
  for (int place = 1; place <= 200; ++place)
    EXPECT_EQ(bucket.take(hundred, 1, start, TokenBucket::longest_wait), place * 10ms);
  EXPECT_FALSE(bucket.take(hundred, 1, start, 2s))
      << "its turn comes too late, and nothing is taken";
  EXPECT_EQ(bucket.take(hundred, 1, start, TokenBucket::longest_wait), 2010ms);
}

TEST(TokenBucket, ARequestBeyondTheBurstTakesAFullBucketAndLeavesABoundedDebt) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.take(hundred, 150, start, 0s), 0s);
  EXPECT_FALSE(bucket.take(hundred, 1, start + 1s, 0s));
  EXPECT_EQ(bucket.take(hundred, 1, start + 1010ms, 0s), 0s);
  EXPECT_EQ(bucket.take(hundred, UINT64_MAX, start + 1h, 0s), 0s);
  EXPECT_EQ(bucket.take(hundred, 1, start + 1h + TokenBucket::longest_wait + 10ms, 0s), 0s);
}

TEST(RateAccount, IsFullWhenItsRatesChange) {
  RateAccount account;
  const RatePair slow{{.amount = 1, .period = 1h, .burst = 1}, {}};
  const RatePair fast{{.amount = 1'000'000, .period = 1s, .burst = 1000}, {}};
  EXPECT_EQ(served(account, slow, start), 1U);
  EXPECT_EQ(served(account, fast, start), 1000U) << "a debt of hours is none of the new rate";
  EXPECT_EQ(served(account, fast, start), 0U);
  EXPECT_EQ(served(account, slow, start), 1U);
}

TEST(TokenBucket, ThreadsTogetherGetNoMore) {
  TokenBucket bucket;
  constexpr Rate rate{.amount = 1000, .period = 1s, .burst = 40'000};
  std::atomic<std::size_t> granted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { granted += served(bucket, rate, start, 20'000); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(granted, 40'000U);
}

TEST(RateAccount, RequestsAndBytesAreTakenTogetherOrNotAtAll) {
  RateAccount account;
  const RatePair rates{hundred, {.amount = 1000, .period = 1s, .burst = 1000}};
  EXPECT_EQ(account.take(rates, {1, 900}, start, 0s), 0s);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(account.take(rates, {1, 200}, start, 0s));
  EXPECT_EQ(served(account, rates, start), 49U);
}

TEST(AddressAccounts, AFloodOfAddressesWinsNoTokens) {
  AddressAccounts accounts;
  const RatePair rates{hundred, {}};
  const auto ask = [&](std::uint64_t name, std::size_t requests) {
    return accounts.with(
        name, [&](RateAccount& account) { return served(account, rates, start, requests); });
  };
  const auto mine = accounts.name_of("abcd");
  EXPECT_EQ(mine, accounts.name_of("abcd"));
  EXPECT_NE(mine, accounts.name_of("abce"));
  EXPECT_EQ(ask(mine, 1000), 50U);
  EXPECT_EQ(ask(mine, 1000), 0U);
  std::size_t granted = 0;
  for (std::uint64_t other = 0; other < 4 * AddressAccounts::most_addresses; ++other)
    granted += ask(accounts.name_of(std::to_string(other)), 100);
  EXPECT_LE(granted, AddressAccounts::most_addresses * 50) << "as many as there are buckets";
  EXPECT_LE(ask(mine, 1000), 50U);
}

TEST(AddressAccounts, ThoseThatAreEmptyStayWhileOthersAreFuller) {
  AddressAccounts accounts;
  const RatePair rates{hundred, {}};
  const auto ask = [&](std::uint64_t name, std::size_t requests) {
    return accounts.with(
        name, [&](RateAccount& account) { return served(account, rates, start, requests); });
  };
  const std::uint64_t hostile = 7;
  EXPECT_EQ(ask(hostile, 1000), 50U);
  for (std::uint64_t i = 1; i <= 1000; ++i)
    EXPECT_EQ(ask(hostile + i * AddressAccounts::sets, 0), 0U);  // all of its set
  EXPECT_EQ(ask(hostile, 1000), 0U) << "it was not forgotten";
}

TEST(ClientLimits, AUserHasLimitsOfItsOwnAndWhatOneRefusesTheOtherGetsBack) {
  RateAccounts accounts;
  PoolSettings settings;
  settings.redis = true;
  settings.rate_limit.per_user = Rate{10, 1s, 10};
  settings.rate_limit.per_address = Rate{15, 1s, 15};
  settings.users = {{.name = "a", .password = "x"},
                    {.name = "b", .password = "x", .rate = Rate{12, 1s, 12}},
                    {.name = "free", .password = "x", .rate = Rate{}}};
  const auto make = [&](std::string_view user, std::string_view network) {
    ClientLimits limits{accounts, network};
    limits.apply(settings, user);
    return limits;
  };
  const auto count = [](ClientLimits& limits, std::size_t asked = 100) {
    std::size_t granted = 0;
    for (; asked > 0; --asked) granted += limits.take({1, 0}, start, 0s) ? 1 : 0;
    return granted;
  };
  auto first = make("a", "here"), again = make("a", "elsewhere"), other = make("b", "here");
  EXPECT_EQ(count(first), 10U);
  EXPECT_EQ(count(again), 0U) << "one account for all connections of a user";
  EXPECT_EQ(count(other), 5U) << "the address has no more";
  auto moved = make("b", "there");
  EXPECT_EQ(count(moved), 7U) << "what the address refused was not taken from the user";
  auto stranger = make("", "far"), unlimited = make("free", "");
  EXPECT_EQ(count(stranger), 15U);
  EXPECT_EQ(count(unlimited), 100U);
}

}  // namespace
}  // namespace sluice::proxy::flow
