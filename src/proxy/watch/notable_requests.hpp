/// Requests worth noting, in lists of bounded size, one of each kind for each worker: the slow log,
/// and the largest requests and replies. A list never holds a value of a user, nor an argument
/// beside the key.
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

namespace sluice::proxy::watch {

inline constexpr std::size_t excerpt_size = 64;

/// A key as logs and statistics show it: cut, and every byte outside of printable ASCII as \xNN.
/// Quotes and backslashes are escaped, so that it can stand in a quoted string.
std::string excerpt(std::string_view key, std::size_t most = excerpt_size);

struct SlowEntry {
  std::uint64_t id = 0;  ///< rises in the whole process
  WallTime at;
  std::chrono::microseconds took{0};
  std::string pool, command;
  std::string key;  ///< an excerpt of the first one
  std::string client;
  std::string server;  ///< empty: no server answered
};

struct SlowRequest {
  std::chrono::nanoseconds took{0};
  std::string_view pool, command, key, client, server;
};

/// Threads: any; note() and may_note() are for one.
class SlowLog {
 public:
  static constexpr std::size_t most_a_second = 128;

  SlowLog(std::size_t entries, std::chrono::microseconds threshold)
      : most_(entries), threshold_ns_(std::chrono::nanoseconds{threshold}.count()) {}

  /// The hot path asks this before it makes a SlowRequest.
  bool is_slow(std::chrono::nanoseconds took) const noexcept {
    return took.count() >= threshold_ns_.load(std::memory_order_relaxed);
  }
  /// So many of a second are noted and no more: when all requests are slow, telling who they are
  /// of would make them slower still.
  bool may_note(SteadyTime now) noexcept {
    if (now - second_ >= std::chrono::seconds{1}) {
      second_ = now;
      noted_ = 0;
    }
    return noted_++ < most_a_second;
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
  SteadyTime second_{};            // when it began
  std::size_t noted_ = 0;          // in it
};

struct BigValue {
  WallTime at;
  std::uint64_t bytes = 0;
  std::string pool, command, key;  ///< key: an excerpt
};

/// One entry for each pool, key and command; older ones than `memory` are forgotten. Threads: any;
/// note() is for one.
class BigValues {
 public:
  static constexpr std::size_t entries = 32;
  static constexpr std::chrono::hours memory{1};

  explicit BigValues(std::uint64_t threshold) : threshold_(threshold) {}

  bool is_big(std::uint64_t bytes) const noexcept {
    return bytes >= threshold_.load(std::memory_order_relaxed);
  }
  void note(std::uint64_t bytes, std::string_view pool, std::string_view command,
            std::string_view key, WallTime now);

  void set_threshold(std::uint64_t bytes) noexcept {
    threshold_.store(bytes, std::memory_order_relaxed);
  }
  /// Largest first.
  std::vector<BigValue> values(WallTime now) const;

 private:
  std::atomic<std::uint64_t> threshold_;
  mutable std::mutex mutex_;
  std::vector<BigValue> values_;  // largest first
};

}  // namespace sluice::proxy::watch
