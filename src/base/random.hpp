/// Randomness: unguessable ids from the kernel, jitter from a cheap generator of each thread, and
/// pauses with jitter.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>

namespace sluice {

/// 16 random bytes of the kernel. Throws std::system_error where it has none.
std::array<std::uint64_t, 2> random_128();
/// The same as 32 hex digits.
std::string random_hex_128();
/// A random (version 4) UUID: 36 characters, lower case.
std::string random_uuid();
/// Uniform in [0, bound); for jitter and back-off, not for secrets. REQUIRES: bound > 0.
std::uint64_t random_below(std::uint64_t bound);

/// How long to wait before the next attempt: doubling, with jitter, so that clients do not come
/// back in step.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds least, std::chrono::milliseconds most)
      : least_(std::max(least, std::chrono::milliseconds{1})),
        most_(std::max(most, least_)),
        now_(least_) {}

  /// Between a half and the whole of the present pause, which then doubles.
  std::chrono::microseconds next() {
    const auto pause = std::chrono::microseconds{now_};
    now_ = std::min(now_ * 2, most_);
    return pause - std::chrono::microseconds{
                       random_below(static_cast<std::uint64_t>(pause.count()) / 2 + 1)};
  }
  void reset() noexcept { now_ = least_; }
  /// The next pause is as long as any: to try again soon will not help.
  void be_patient() noexcept { now_ = most_; }

 private:
  std::chrono::milliseconds least_;
  std::chrono::milliseconds most_;
  std::chrono::milliseconds now_;
};

}  // namespace sluice
