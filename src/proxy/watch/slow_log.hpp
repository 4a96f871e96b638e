/// The requests that took longest to answer, newest first: a ring of bounded size for each worker.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice::proxy {

/// Never holds a value of a user, nor an argument beside the key.
struct SlowEntry {
  std::uint64_t id = 0;  ///< rises in the whole process
  WallTime at;
  std::chrono::microseconds took{0};
  std::string pool, command, key, client,
      server;  ///< key: an excerpt of the first; server: empty if none answered
};

struct SlowRequest {
  std::chrono::nanoseconds took{0};
  std::string_view pool, command, key, client, server;
};

/// Threads: any; note() is for one.
class SlowLog {
 public:
  SlowLog(std::size_t entries, std::chrono::microseconds threshold)
      : most_(entries), threshold_ns_(std::chrono::nanoseconds{threshold}.count()) {}

  /// The question of the hot path, before a SlowRequest is put together.
  bool is_slow(std::chrono::nanoseconds took) const noexcept {
    return took.count() >= threshold_ns_.load(std::memory_order_relaxed);
  }
  void note(const SlowRequest& request, WallTime now);

  void set_limits(std::size_t entries, std::chrono::microseconds threshold);
  std::vector<SlowEntry> entries() const;
  void reset();

 private:
  mutable std::mutex mutex_;
  std::size_t most_;
  std::atomic<std::int64_t> threshold_ns_;
  std::deque<SlowEntry> entries_;  // newest first
};

}  // namespace sluice::proxy
