/// Whether to look for a reply a little longer before sleeping, learnt from how that went.
///
/// Waking a sleeping thread costs more than a near server takes to answer. But a spin that ends without a reply is CPU
/// burnt, so after each run of failures the spin is left out for twice as many waits as before (256 at most).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace sluice::redis {

/// Threads: one at a time.
class AdaptiveSpin {
 public:
  explicit AdaptiveSpin(std::chrono::microseconds limit) noexcept : limit_(limit) {}

  std::chrono::microseconds limit() const noexcept { return limit_; }

  /// Asked once before each wait.
  bool pays() noexcept {
    if (limit_.count() == 0) return false;
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  void found() noexcept {
    failures_ = 0;
    pause_ = 0;
  }
  void missed() noexcept {
    if (++failures_ < tolerated) return;
    failures_ = 0;
    pause_ = std::min<std::uint32_t>(pause_ == 0 ? 4 : pause_ * 2, 256);
    skip_ = pause_;
  }

 private:
  static constexpr std::uint32_t tolerated = 4;

  std::chrono::microseconds limit_;
  std::uint32_t failures_ = 0;
  std::uint32_t pause_ = 0;
  std::uint32_t skip_ = 0;
};

}  // namespace sluice::redis
