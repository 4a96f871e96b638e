/// The buyers of the demo: all click at once, a third of them twice, a ninth a third time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/latency.hpp"
#include "sluice/sale.hpp"

namespace sluice::cli {

/// What the buyers were told; of one process, or of all together.
struct Tally {
  std::uint64_t clicks = 0;
  std::uint64_t admitted = 0;
  std::uint64_t sold_out = 0;
  std::uint64_t bought_already = 0;
  std::uint64_t repeats_same = 0;   ///< repeats that were answered with the same order
  std::uint64_t repeats_other = 0;  ///< repeats answered with anything else: a fault
  std::uint64_t others = 0;         ///< closed, full ...: a fault in this sale
  std::uint64_t failed = 0;         ///< clicks that ended in an Error
  std::string first_failure;
  LatencyCounts latencies;
  std::vector<std::string> numbers;  ///< of the orders that buyers were told of

  static constexpr std::uint64_t Tally::*counts[] = {
      &Tally::clicks,       &Tally::admitted,      &Tally::sold_out, &Tally::bought_already,
      &Tally::repeats_same, &Tally::repeats_other, &Tally::others,   &Tally::failed};
  void add(const Tally& more);
};

struct Crowd {
  std::uint64_t first = 0;  ///< buyers [first, last)
  std::uint64_t last = 0;
  int threads = 2;
};

/// All clicks of `crowd`; counts answers into `answered` while it runs.
Tally hold_sale(Sale& sale, Clock& clock, const Crowd& crowd, std::atomic<std::uint64_t>& answered);

/// The crowd of a sale, to be served by several processes.
struct InstancePlan {
  std::string store;
  std::string sale;
  std::uint64_t buyers = 0;
  int instances = 1;
};

/// Starts the processes, lets them click all at once, and adds up what they report. Blocks until
/// the last has ended. Throws std::runtime_error when one of them fails.
Tally hold_sale_in_processes(const InstancePlan& plan);

/// What each of them runs: says "ready", waits for the end of its standard input, holds its part,
/// prints its tally.
int serve_instance(const std::string& store, const std::string& sale, const Crowd& crowd);

/// The crowd of a sale that processes of `sluice serve` sell over HTTP.
struct ServedPlan {
  std::string store;
  std::string orders;  ///< the database
  std::string sale;
  std::uint64_t buyers = 0;
  int instances = 1;
};

struct ServedSale {
  Tally tally;
  std::chrono::nanoseconds clicking{};
};

/// Starts the processes, lets the buyers click all at once over HTTP, a third of those who have
/// bought twice, and stops the processes. Throws std::runtime_error when one of them fails.
ServedSale hold_sale_over_http(const ServedPlan& plan, const std::stop_token& stop,
                               const std::function<void(const std::string&)>& progress);

}  // namespace sluice::cli
