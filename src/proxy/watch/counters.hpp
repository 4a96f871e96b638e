/// What the workers count. Each worker has counters of its own, which it alone writes; others read them at any time
/// and add them up. The tables are counters.def.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace sluice::proxy {

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

enum class CounterKind : std::uint8_t { counter, gauge, timestamp };

/// One row of counters.def.
struct CounterRow {
  std::string_view name;
  CounterKind kind;
  bool of_twemproxy;  ///< stands in the statistics document under this name
  std::string_view help;
};

#define COUNTER(name, kind, of_twemproxy, help) Counter name;
struct PoolCounters {
#define POOL
#include "proxy/watch/counters.def"
#undef POOL
};
struct ServerCounters {
#define SERVER
#include "proxy/watch/counters.def"
#undef SERVER
};
#undef COUNTER

}  // namespace sluice::proxy
