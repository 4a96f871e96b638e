/// What the store's clock says, by the last reply that told it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "sluice/clock.hpp"

namespace sluice::cache {

/// Threads: any. It is right to half a round trip, but for jumps since the last reply: what hangs
/// on it is when a value is loaded anew, never whether it is served after its end.
class StoreClock {
 public:
  void saw(std::int64_t store_us, SteadyTime now) noexcept {
    if (store_us < 0 || store_us > std::int64_t{1} << 53) return;  // no time
    ahead_us_.store(store_us - us_of(now), std::memory_order_relaxed);
    seen_us_.store(us_of(now), std::memory_order_release);
  }
  /// Whether a reply has told it in the last half minute.
  bool is_known(SteadyTime now) const noexcept {
    const auto seen = seen_us_.load(std::memory_order_acquire);
    return seen != never && us_of(now) - seen < 30'000'000;
  }
  std::int64_t now_us(SteadyTime now) const noexcept {
    return us_of(now) + ahead_us_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t never = INT64_MIN;
  static std::int64_t us_of(SteadyTime time) noexcept {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  }
  std::atomic<std::int64_t> ahead_us_{0};
  std::atomic<std::int64_t> seen_us_{never};
};

}  // namespace sluice::cache
