/// The largest requests and replies of late: at most `entries` of them, one for each key and
/// command; older than `memory` they are forgotten. One list for each worker.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"

namespace sluice::proxy {

struct BigValue {
  WallTime at;
  std::uint64_t bytes = 0;
  std::string pool, command, key;  ///< key: an excerpt
};

/// Threads: any; note() is for one.
class BigValues {
 public:
  static constexpr std::size_t entries = 32;
  static constexpr std::chrono::hours memory{1};

  explicit BigValues(std::uint64_t threshold) : threshold_(threshold) {}

  /// The question of the hot path.
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

}  // namespace sluice::proxy
