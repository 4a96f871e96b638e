/// Counters of the whole process, in plain atomics. A program exports them as it likes; see metrics_table().
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice {

/// One row: field, exported name, help.
#define SLUICE_METRICS(X)                                                                     \
  X(lock_acquired, "sluice_lock_acquired_total", "Holds granted")                             \
  X(lock_refused, "sluice_lock_refused_total", "Acquires that ended without the hold")        \
  X(lock_lost, "sluice_lock_lost_total", "Holds that ended before their owner released them") \
  X(lock_renewals, "sluice_lock_renewals_total", "Leases prolonged by the watchdog")          \
  X(lock_renewal_failures, "sluice_lock_renewal_failures_total",                              \
    "Renewals that failed and are tried again")                                               \
  X(lock_release_failures, "sluice_lock_release_failures_total",                              \
    "Releases nobody waited for that failed")                                                 \
  X(rate_granted, "sluice_rate_granted_total", "Permits of rate limiters granted")            \
  X(rate_refused, "sluice_rate_refused_total", "Acquires of rate limiters refused")           \
  X(fence_stale, "sluice_fence_stale_total", "Fencing tokens refused because they were old")  \
  X(numbers_issued, "sluice_numbers_issued_total", "Business numbers handed out")             \
  X(numbers_full, "sluice_numbers_full_total", "Requests refused because the period is full") \
  X(ids_issued, "sluice_ids_issued_total", "Ids handed out")                                  \
  X(sale_admitted, "sluice_sale_admitted_total", "Orders admitted")                           \
  X(sale_refused, "sluice_sale_refused_total", "Orders refused: sold out, limit, closed")     \
  X(sale_persisted, "sluice_sale_persisted_total", "Orders written to the database")          \
  X(sale_dead_letters, "sluice_sale_dead_letters_total",                                      \
    "Stream entries moved to the dead letter")                                                \
  X(redis_commands, "sluice_redis_commands_total", "Commands sent to a server")               \
  X(redis_writes, "sluice_redis_writes_total", "Write system calls")                          \
  X(redis_reconnects, "sluice_redis_reconnects_total", "Connections made again")              \
  X(redis_unknown, "sluice_redis_unknown_total", "Calls that ended with an unknown effect")   \
  X(engine_fsyncs, "sluice_engine_fsyncs_total", "fsync calls of embedded engines")           \
  X(engine_rewrites, "sluice_engine_rewrites_total", "Append-only files rewritten")

struct Metrics {
#define SLUICE_FIELD(field, name, help) std::atomic<std::uint64_t> field{0};
  SLUICE_METRICS(SLUICE_FIELD)
#undef SLUICE_FIELD
};

Metrics& metrics() noexcept;

inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
  counter.fetch_add(by, std::memory_order_relaxed);
}

struct MetricRow {
  std::string_view name;
  std::string_view help;
  const std::atomic<std::uint64_t>* value;
};

/// Every counter with its exported name, in the order of the table.
std::span<const MetricRow> metrics_table() noexcept;

}  // namespace sluice
