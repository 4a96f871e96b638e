/// What the buyers of the demo were told, and how it goes from process to process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/latency.hpp"

namespace sluice::cli {

/// Of one process, or of all together.
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

/// Heads a line that tells how far a process is, before the one of its tally.
inline constexpr char progress_mark = '#';

/// One line: the counts, the latencies, the numbers of the orders between a count and a dot, and
/// the first failure.
std::string line_of(const Tally& tally);
/// Throws std::runtime_error for a line that is none.
Tally tally_of(const std::string& line);

}  // namespace sluice::cli
