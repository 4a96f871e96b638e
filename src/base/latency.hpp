/// How often something took how long, in buckets that are fine enough for percentiles: below 16 us
/// one for each microsecond, above 16 for each power of two, so that a value is known to 1/16 of
/// itself at worst and a percentile, given as the middle of its bucket, to about 3 %. What took
/// longer than 134 s counts as that.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <vector>

namespace sluice {

struct LatencyBuckets {
  static constexpr std::size_t per_octave = 16;
  static constexpr std::uint64_t most_us = (std::uint64_t{1} << 27) - 1;

  static constexpr std::uint64_t us_of(std::chrono::nanoseconds time) noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)) / 1000;
  }
  static constexpr std::size_t of(std::uint64_t us) noexcept {
    us = std::min(us, most_us);
    if (us < per_octave) return us;
    const auto shift = static_cast<unsigned>(std::bit_width(us)) - 5;
    return shift * per_octave + (us >> shift);
  }
  static constexpr std::uint64_t lowest(std::size_t bucket) noexcept {
    if (bucket < 2 * per_octave) return bucket;
    const auto shift = bucket / per_octave - 1;
    return static_cast<std::uint64_t>(bucket % per_octave + per_octave) << shift;
  }
  static constexpr std::uint64_t middle(std::size_t bucket) noexcept {
    return (lowest(bucket) + lowest(bucket + 1)) / 2;
  }
  static constexpr std::size_t count = 384;
};
static_assert(LatencyBuckets::of(LatencyBuckets::most_us) + 1 == LatencyBuckets::count);

/// The sum of some histograms: a plain value.
struct LatencyCounts {
  std::vector<std::uint64_t> buckets;  ///< empty: nothing counted
  std::uint64_t sum_us = 0;

  std::uint64_t count() const noexcept;
  /// What a part `share` (0.99) of all was not slower than; zero when there are none. O(buckets).
  std::chrono::microseconds quantile(double share) const noexcept;
  std::chrono::microseconds mean() const noexcept;
  void observe(std::chrono::nanoseconds time);
  LatencyCounts& operator+=(const LatencyCounts& more);
  /// What came since `before`, an earlier sum of the same histograms.
  LatencyCounts since(const LatencyCounts& before) const;
};

}  // namespace sluice
