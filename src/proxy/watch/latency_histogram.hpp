/// How often something took how long, in buckets that are fine enough for percentiles: below 16 us
/// one for each microsecond, above 16 for each power of two, so that a value is known to 1/16 of
/// itself at worst and a percentile, given as the middle of its bucket, to about 3 %. What took
/// longer than 134 s counts as that.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice::proxy::watch {

struct LatencyBuckets {
  static constexpr std::size_t per_octave = 16;
  static constexpr std::uint64_t most_us = (std::uint64_t{1} << 27) - 1;

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
  static_assert(count > 0);
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
  LatencyCounts& operator+=(const LatencyCounts& more);
  /// What came since `before`, an earlier sum of the same histograms.
  LatencyCounts since(const LatencyCounts& before) const;
};

/// Threads: one writer, any readers. No locked instruction; 3 KiB.
class LatencyHistogram {
 public:
  void observe(std::chrono::nanoseconds time) noexcept {
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)) / 1000;
    raise(buckets_[LatencyBuckets::of(us)], 1);
    raise(sum_us_, us);
  }
  void add_to(LatencyCounts& counts) const;

 private:
  using Cell = std::atomic<std::uint64_t>;
  static void raise(Cell& cell, std::uint64_t by) noexcept {
    cell.store(cell.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::array<Cell, LatencyBuckets::count> buckets_{};
  Cell sum_us_{0};
};

/// A histogram for each command, made when the command is first seen. Threads: as the histograms.
class CommandLatencies {
 public:
  explicit CommandLatencies(std::size_t commands) : slots_(commands) {}
  ~CommandLatencies();
  CommandLatencies(const CommandLatencies&) = delete;
  CommandLatencies& operator=(const CommandLatencies&) = delete;

  std::size_t size() const noexcept { return slots_.size(); }
  /// `command` < size().
  void observe(std::size_t command, std::chrono::nanoseconds time) {
    LatencyHistogram* histogram = slots_[command].load(std::memory_order_relaxed);
    if (!histogram) histogram = make(command);
    histogram->observe(time);
  }
  /// Null: the command was never seen.
  const LatencyHistogram* of(std::size_t command) const noexcept {
    return slots_[command].load(std::memory_order_acquire);
  }

 private:
  LatencyHistogram* make(std::size_t command);

  std::vector<std::atomic<LatencyHistogram*>> slots_;
};

}  // namespace sluice::proxy::watch
