#include "proxy/watch/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace sluice::proxy::watch {
namespace {

using namespace std::chrono_literals;

TEST(LatencyHistogram, EveryBucketBeginsWhereTheOneBeforeEnds) {
  for (std::size_t bucket = 1; bucket < LatencyBuckets::count; ++bucket) {
    const auto first = LatencyBuckets::lowest(bucket);
    EXPECT_EQ(LatencyBuckets::of(first), bucket);
    EXPECT_EQ(LatencyBuckets::of(first - 1), bucket - 1);
  }
}

TEST(LatencyHistogram, WhatIsTooLongOrNegativeIsCountedAtTheEnds) {
  LatencyHistogram histogram;
  histogram.observe(-5s);
  histogram.observe(24h);
  LatencyCounts counts;
  histogram.add_to(counts);
  EXPECT_EQ(counts.buckets.front(), 1u);
  EXPECT_EQ(counts.buckets.back(), 1u);
}

TEST(LatencyHistogram, PercentilesAreRightToAFewPercent) {
  std::mt19937_64 random{7};
  std::lognormal_distribution<double> times{6, 2};  // us, from 1 to some seconds
  LatencyHistogram histogram;
  std::vector<double> all;
  for (int i = 0; i < 100'000; ++i) {
    const auto us = static_cast<std::int64_t>(std::min(times(random), 5e7));
    all.push_back(static_cast<double>(us));
    histogram.observe(std::chrono::microseconds{us});
  }
  std::ranges::sort(all);
  LatencyCounts counts;
  histogram.add_to(counts);
  ASSERT_EQ(counts.count(), all.size());
  for (const double share : {0.1, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = all[static_cast<std::size_t>(share * static_cast<double>(all.size())) - 1];
    const auto told = static_cast<double>(counts.quantile(share).count());
    EXPECT_NEAR(told, exact, 0.035 * exact + 1) << share;
  }
}

TEST(LatencyHistogram, SumsAndDifferencesAreThoseOfTheirParts) {
  LatencyHistogram one, other;
  one.observe(100us);
  LatencyCounts before;
  one.add_to(before);
  one.observe(1ms);
  other.observe(1ms);
  LatencyCounts sum;
  one.add_to(sum);
  other.add_to(sum);
  EXPECT_EQ(sum.count(), 3u);
  const auto since = sum.since(before);
  EXPECT_EQ(since.count(), 2u);
  EXPECT_EQ(since.mean(), 1000us);
  LatencyCounts again = before;
  again += since;
  EXPECT_EQ(again.buckets, sum.buckets);
  EXPECT_EQ(LatencyCounts{}.quantile(0.99), 0us);
}

TEST(CommandLatencies, AHistogramIsMadeWhenItsCommandComes) {
  CommandLatencies latencies{3};
  EXPECT_EQ(latencies.of(1), nullptr);
  latencies.observe(1, 1ms);
  latencies.observe(1, 1ms);
  ASSERT_NE(latencies.of(1), nullptr);
  EXPECT_EQ(latencies.of(2), nullptr);
  LatencyCounts counts;
  latencies.of(1)->add_to(counts);
  EXPECT_EQ(counts.count(), 2u);
}

}  // namespace
}  // namespace sluice::proxy::watch
