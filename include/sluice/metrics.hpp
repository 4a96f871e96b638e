/// Counters and histograms of the whole process, in plain atomics. prometheus_text() exports them;
/// metrics_table() and histograms_table() are for programs that export them otherwise.
///
///     response.body = sluice::prometheus_text({{"service", "shop"}});   // GET /metrics
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "sluice/standard.hpp"

namespace sluice {

/// How often something took how long. Bucket i counts what took less than 2^i microseconds (and not
/// less than the bucket before); the last one counts the rest.
class Histogram {
 public:
  static constexpr std::size_t buckets = 28;

  /// Threads: any; wait-free.
  void observe(std::chrono::nanoseconds time) noexcept {
    const auto ns = std::max<std::int64_t>(time.count(), 0);
    const auto us = static_cast<std::uint64_t>(ns) / 1000;
    const auto bucket = std::min<std::size_t>(std::bit_width(us), buckets - 1);
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(static_cast<std::uint64_t>(ns), std::memory_order_relaxed);
  }

  std::uint64_t count(std::size_t bucket) const noexcept {
    return counts_[bucket].load(std::memory_order_relaxed);
  }
  std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < buckets; ++i) all += count(i);
    return all;
  }
  std::chrono::nanoseconds sum() const noexcept {
    return std::chrono::nanoseconds{sum_ns_.load(std::memory_order_relaxed)};
  }
  /// Bucket `bucket` counts what took less than this.
  static constexpr std::chrono::microseconds bound(std::size_t bucket) noexcept {
    return std::chrono::microseconds{std::uint64_t{1} << bucket};
  }

 private:
  std::array<std::atomic<std::uint64_t>, buckets> counts_{};
  std::atomic<std::uint64_t> sum_ns_{0};
};

/// One row: field, exported name, help.
#define SLUICE_HISTOGRAMS(X)                                                             \
  X(lock_wait, "sluice_lock_wait_seconds", "How long an acquire took that got the hold") \
  X(lock_hold, "sluice_lock_hold_seconds", "How long a hold lasted that was released")   \
  X(lock_renewal_lag, "sluice_lock_renewal_lag_seconds",                                 \
    "How much later than planned a renewal was confirmed")

/// One row: field, exported name, help.
#define SLUICE_METRICS(X)                                                                         \
  X(lock_acquired, "sluice_lock_acquired_total", "Holds granted")                                 \
  X(lock_refused, "sluice_lock_refused_total", "Acquires that ended without the hold")            \
  X(lock_handed_on, "sluice_lock_handed_on_total",                                                \
    "Holds that went to the next owner within the process, without the server")                   \
  X(lock_handed_over, "sluice_lock_handed_over_total",                                            \
    "Holds that another process's release gave to this one")                                      \
  X(lock_late, "sluice_lock_late_total", "Grants that came when their lease was over")            \
  X(lock_near_misses, "sluice_lock_near_misses_total",                                            \
    "Holds that were at risk and were renewed all the same")                                      \
  X(lock_lost, "sluice_lock_lost_total", "Holds that ended before their owner released them")     \
  X(lock_renewals, "sluice_lock_renewals_total", "Leases prolonged by the watchdog")              \
  X(lock_renewal_failures, "sluice_lock_renewal_failures_total",                                  \
    "Renewals that failed and are tried again")                                                   \
  X(lock_release_failures, "sluice_lock_release_failures_total",                                  \
    "Releases nobody waited for that failed")                                                     \
  X(rate_granted, "sluice_rate_granted_total", "Permits of rate limiters granted")                \
  X(rate_refused, "sluice_rate_refused_total", "Acquires of rate limiters refused")               \
  X(fence_stale, "sluice_fence_stale_total", "Fencing tokens refused because they were old")      \
  X(numbers_issued, "sluice_numbers_issued_total", "Business numbers handed out")                 \
  X(numbers_full, "sluice_numbers_full_total", "Requests refused because the period is full")     \
  X(ids_issued, "sluice_ids_issued_total", "Ids handed out")                                      \
  X(sale_admitted, "sluice_sale_admitted_total", "Orders admitted")                               \
  X(sale_refused, "sluice_sale_refused_total", "Orders refused: sold out, limit, closed")         \
  X(sale_persisted, "sluice_sale_persisted_total", "Orders written to the database")              \
  X(sale_dead_letters, "sluice_sale_dead_letters_total",                                          \
    "Stream entries moved to the dead letter")                                                    \
  X(sale_messages_sent, "sluice_sale_messages_sent_total",                                        \
    "Messages of orders that their receiver has taken")                                           \
  X(sale_message_failures, "sluice_sale_message_failures_total",                                  \
    "Attempts to send a message that failed")                                                     \
  X(sale_messages_dead, "sluice_sale_messages_dead_total",                                        \
    "Messages that are not sent any more unless they are replayed")                               \
  X(sale_refunds_sent, "sluice_sale_refunds_sent_total", "Refunds that providers have taken")     \
  X(sale_refund_failures, "sluice_sale_refund_failures_total",                                    \
    "Attempts to send a refund that failed")                                                      \
  X(bloom_followed, "sluice_bloom_followed_total",                                                \
    "Definitions of shared Bloom filters that changed and were followed")                         \
  X(bloom_copy_failures, "sluice_bloom_copy_failures_total",                                      \
    "Refreshes of local copies of Bloom filters that failed")                                     \
  X(cache_hits, "sluice_cache_hits_total", "Values that the store had")                           \
  X(cache_near_hits, "sluice_cache_near_hits_total",                                              \
    "Values that the near cache of the process had")                                              \
  X(cache_near_misses, "sluice_cache_near_misses_total",                                          \
    "Looks into a near cache that had nothing")                                                   \
  X(cache_near_invalidations, "sluice_cache_near_invalidations_total",                            \
    "Changed keys that the store told near caches")                                               \
  X(cache_near_flushes, "sluice_cache_near_flushes_total",                                        \
    "Near caches emptied because changes may have been missed")                                   \
  X(cache_misses, "sluice_cache_misses_total", "Calls for which the store had no value")          \
  X(cache_absent_hits, "sluice_cache_absent_hits_total", "Calls answered by a cached absence")    \
  X(cache_absent_refused, "sluice_cache_absent_refused_total",                                    \
    "Absences not cached because the budget was spent")                                           \
  X(cache_invalid_keys, "sluice_cache_invalid_keys_total",                                        \
    "Calls whose key the validator refused")                                                      \
  X(cache_gated, "sluice_cache_gated_total", "Calls that the gate answered: it does not exist")   \
  X(cache_gate_failures, "sluice_cache_gate_failures_total",                                      \
    "Times a gate threw, and was taken for open")                                                 \
  X(cache_loads, "sluice_cache_loads_total", "Loads begun")                                       \
  X(cache_load_failures, "sluice_cache_load_failures_total", "Loads that threw")                  \
  X(cache_failures_told, "sluice_cache_failures_told_total",                                      \
    "Calls answered by a failure that was remembered")                                            \
  X(cache_lease_renewals, "sluice_cache_lease_renewals_total",                                    \
    "Renewals of the leases of loads that run")                                                   \
  X(cache_loads_refused, "sluice_cache_loads_refused_total",                                      \
    "Loads refused because too many wait for their turn")                                         \
  X(cache_shared_loads, "sluice_cache_shared_loads_total",                                        \
    "Calls answered by the load of another call of the process")                                  \
  X(cache_lease_waits, "sluice_cache_lease_waits_total", "Waits for the load of another process") \
  X(cache_early_refreshes, "sluice_cache_early_refreshes_total",                                  \
    "Values loaded anew before their time was over")                                              \
  X(cache_stale_served, "sluice_cache_stale_served_total",                                        \
    "Values served after their time while one load runs")                                         \
  X(cache_late_loads, "sluice_cache_late_loads_total",                                            \
    "Loaded values not stored: invalidated meanwhile, or the lease was over")                     \
  X(cache_store_down, "sluice_cache_store_down_total", "Calls that found the store down")         \
  X(cache_copies_served, "sluice_cache_copies_served_total",                                      \
    "Local copies served while the store was down")                                               \
  X(cache_invalidations, "sluice_cache_invalidations_total", "Keys invalidated by this process")  \
  X(cache_second_invalidations, "sluice_cache_second_invalidations_total",                        \
    "Delayed second invalidations done by this process")                                          \
  X(redis_commands, "sluice_redis_commands_total", "Commands sent to a server")                   \
  X(redis_writes, "sluice_redis_writes_total", "Write system calls")                              \
  X(redis_reconnects, "sluice_redis_reconnects_total", "Connections made again")                  \
  X(redis_replica_reads, "sluice_redis_replica_reads_total", "Calls that replicas have answered") \
  X(redis_unknown, "sluice_redis_unknown_total", "Calls that ended with an unknown effect")       \
  X(engine_fsyncs, "sluice_engine_fsyncs_total", "fsync calls of embedded engines")               \
  X(engine_rewrites, "sluice_engine_rewrites_total", "Append-only files rewritten")

struct Metrics {
// NOLINTNEXTLINE(*-macro-parentheses): it declares a member
#define SLUICE_FIELD(field, name, help) std::atomic<std::uint64_t> field{0};
  SLUICE_METRICS(SLUICE_FIELD)
#undef SLUICE_FIELD
#define SLUICE_FIELD(field, name, help) Histogram field;
  SLUICE_HISTOGRAMS(SLUICE_FIELD)
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

struct HistogramRow {
  std::string_view name;
  std::string_view help;
  const Histogram* value;
};

std::span<const HistogramRow> histograms_table() noexcept;

/// Every counter with its exported name, in the order of the table.
std::span<const MetricRow> metrics_table() noexcept;

struct MetricLabel {
  std::string_view name;
  std::string_view value;
};

/// `name="value",...`, escaped: what stands in the braces of a line of that format.
std::string labels_text(std::span<const MetricLabel> labels);
inline std::string labels_text(std::initializer_list<MetricLabel> labels) {
  return labels_text(std::span<const MetricLabel>{labels.begin(), labels.size()});
}

/// All counters and histograms in the text format of Prometheus (0.0.4), each with these labels.
std::string prometheus_text(std::span<const MetricLabel> labels);
inline std::string prometheus_text(std::initializer_list<MetricLabel> labels = {}) {
  return prometheus_text(std::span<const MetricLabel>{labels.begin(), labels.size()});
}

}  // namespace sluice
