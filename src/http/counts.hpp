/// What loops count, and how Prometheus reads it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "base/counter.hpp"
#include "http/problem.hpp"
#include "http/routes.hpp"
#include "http/status.hpp"
#include "sluice/metrics.hpp"

namespace sluice::http {

/// Of one loop. Threads: one writer, any readers.
class Counts {
 public:
  explicit Counts(std::size_t routes) : routes_(routes + 1) {}

  /// `route`: its index in the table; the number of routes for a request that has none.
  void answered(std::size_t route, int status, std::chrono::nanoseconds time);
  void refused(const ProblemType& problem) noexcept;
  /// Requests answered.
  std::uint64_t answers() const noexcept;

#define CAUSE(name) Counter name;
#include "http/causes.def"
#undef CAUSE
  Counter open_connections;

 private:
  friend std::string metrics_text(const Routes& routes, std::span<const Counts* const> loops);

  /// A histogram for each status that was answered.
  struct OfRoute {
    std::array<std::atomic<Histogram*>, statuses.size()> by_status{};
    std::array<std::unique_ptr<Histogram>, statuses.size()> owned;
  };
  std::deque<OfRoute> routes_;
  std::array<Counter, own_problems.size()> refused_;
};

/// The sums of all loops, as Prometheus 0.0.4. Labels are routes, codes and causes: nothing that
/// clients choose.
std::string metrics_text(const Routes& routes, std::span<const Counts* const> loops);

}  // namespace sluice::http
