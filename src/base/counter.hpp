/// A number that one thread counts and others read.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

/// Threads: one writer, any readers. No locked instruction.
class Counter {
 public:
  void add(std::int64_t n = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void set(std::int64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  std::int64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

}  // namespace sluice
