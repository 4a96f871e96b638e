/// How long things took, in log-linear buckets (8 to each power of two: quantiles are right within
/// 13 %).
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <numeric>

namespace sluice::cli {

class Latencies {
 public:
  static constexpr std::size_t buckets = 8 * 40;
  using Counts = std::array<std::uint64_t, buckets>;

  void add(std::chrono::nanoseconds took) {
    ++counts_[bucket_of(
        static_cast<std::uint64_t>(std::max<std::int64_t>(took.count() / 1000, 0)))];
  }
  void add(const Counts& counts) {
    for (std::size_t i = 0; i < buckets; ++i) counts_[i] += counts[i];
  }
  const Counts& counts() const noexcept { return counts_; }

  /// Upper edge of the bucket in which the `share` (0 to 1) of all lies; 0 without any.
  std::chrono::microseconds quantile(double share) const {
    const auto all = std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
    auto rank = static_cast<std::uint64_t>(share * static_cast<double>(all));
    if (all == 0) return {};
    for (std::size_t i = 0; i < buckets; ++i) {
      if (counts_[i] > rank) return std::chrono::microseconds{edge_of(i)};
      rank -= counts_[i];
    }
    return std::chrono::microseconds{edge_of(buckets - 1)};
  }

 private:
  static std::size_t bucket_of(std::uint64_t microseconds) {
    if (microseconds < 8) return microseconds;
    const auto power = static_cast<unsigned>(std::bit_width(microseconds)) - 4;  // >= 0
    const std::size_t bucket = 8 * (power + 1) + ((microseconds >> power) - 8);
    return std::min(bucket, buckets - 1);
  }
  static std::int64_t edge_of(std::size_t bucket) {
    if (bucket < 8) return static_cast<std::int64_t>(bucket) + 1;
    const std::size_t power = bucket / 8 - 1;
    return static_cast<std::int64_t>((bucket % 8 + 9) << power);
  }

  Counts counts_{};
};

}  // namespace sluice::cli
