/// Whether the store is known to be down: then calls need not find out one by one, each after the
/// Store's timeout.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

#include "sluice/clock.hpp"
#include "sluice/error.hpp"

namespace sluice::cache {

/// Whether the server may be away only for a while: not reached, silent, loading, a replica now, or
/// without memory for what is written.
bool is_away(const Error& failure) noexcept;

/// Threads: any.
class Breaker {
 public:
  /// `silence`: a server that has answered nothing for so long is down.
  explicit Breaker(std::chrono::milliseconds silence) noexcept : silence_(silence) {}

  /// True: a call would find the store down. Now and then false, for one call: it looks again.
  bool is_open(SteadyTime now) noexcept {
    if (!down_.load(std::memory_order_acquire)) return false;
    auto look_at = look_at_.load(std::memory_order_relaxed);
    return now < look_at || !look_at_.compare_exchange_strong(look_at, now + longest_look,
                                                              std::memory_order_relaxed);
  }
  void succeeded() noexcept {
    if (silent_since_.load(std::memory_order_relaxed) != SteadyTime::max())
      silent_since_.store(SteadyTime::max(), std::memory_order_relaxed);
    if (down_.load(std::memory_order_relaxed)) down_.store(false, std::memory_order_release);
  }
  /// A call that began at `begun` has failed.
  void failed(const Error& failure, SteadyTime begun, SteadyTime now) noexcept {
    if (failure.errc() == Errc::timeout) {
      // Callers may have less patience than that: their waits count together.
      const auto since = std::min(silent_since_.load(std::memory_order_relaxed), begun);
      silent_since_.store(since, std::memory_order_relaxed);
      if (now - since < silence_) return;
    } else if (failure.errc() != Errc::connection) {
      return succeeded();
    }
    look_at_.store(now + pause, std::memory_order_relaxed);
    down_.store(true, std::memory_order_release);
  }

 private:
  static constexpr std::chrono::milliseconds pause{100};
  static constexpr std::chrono::seconds longest_look{5};

  const std::chrono::milliseconds silence_;
  std::atomic<SteadyTime> silent_since_{SteadyTime::max()};  // max(): it has answered
  std::atomic<bool> down_{false};
  std::atomic<SteadyTime> look_at_{};
};

}  // namespace sluice::cache
