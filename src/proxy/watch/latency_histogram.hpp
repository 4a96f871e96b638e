/// Latencies that one thread observes and others read: base/latency.hpp has the buckets.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/latency.hpp"

namespace sluice::proxy::watch {

/// Threads: one writer, any readers. No locked instruction; 3 KiB.
class LatencyHistogram {
 public:
  void observe(std::chrono::nanoseconds time) noexcept {
    const auto us = LatencyBuckets::us_of(time);
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
