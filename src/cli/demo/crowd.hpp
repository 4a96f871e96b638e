/// The buyers of the demo: all click at once, a third of them twice, a ninth a third time.
#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "cli/latency.hpp"
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
  Latencies latencies;
  std::vector<std::string> numbers;  ///< of the orders that buyers were told of

  void add(const Tally& more);
};

void to_json(nlohmann::json& json, const Tally& tally);
void from_json(const nlohmann::json& json, Tally& tally);

struct Crowd {
  std::uint64_t first = 0;  ///< buyers [first, last)
  std::uint64_t last = 0;
  int threads = 2;
};

/// All clicks of `crowd`; counts answers into `answered` while it runs.
Tally hold_sale(Sale& sale, Clock& clock, const Crowd& crowd, std::atomic<std::uint64_t>& answered);

}  // namespace sluice::cli
