/// The buyers of the demo: all click at once, a third of them twice, a ninth a third time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "cli/demo/tally.hpp"
#include "sluice/sale.hpp"

namespace sluice::cli {

struct Crowd {
  std::uint64_t first = 0;  ///< buyers [first, last)
  std::uint64_t last = 0;
  int threads = 2;
  std::stop_token stop = {};  ///< nobody clicks from then on
};

/// All clicks of `crowd`; counts answers into `answered` while it runs.
Tally hold_sale(Sale& sale, Clock& clock, const Crowd& crowd, std::atomic<std::uint64_t>& answered);

/// The crowd of a sale, to be served by several processes.
struct InstancePlan {
  std::string store;
  std::string sale;
  std::uint64_t buyers = 0;
  int instances = 1;
  std::stop_token stop = {};  ///< they are told to end
};

/// Starts the processes, lets them click all at once, and adds up what they report. Blocks until
/// the last has ended. Throws std::runtime_error when one of them fails, or was told to end.
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
/// bought twice, and stops the processes. Throws std::runtime_error when one of them fails, or when
/// its program is not there.
ServedSale hold_sale_over_http(const ServedPlan& plan, const std::stop_token& stop,
                               const std::function<void(const std::string&)>& progress);

}  // namespace sluice::cli
