/// Many seeds, one after another, and what to say of one that failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lock/simulation/branches.hpp"

namespace sluice::simulation {

struct Seeds {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  ///< the last one too
};

/// "A..B" or "A". Throws std::invalid_argument.
Seeds seeds_of(std::string_view text);

struct Campaign {
  std::string primitive = "mutex";
  std::string profile = "usual";
  std::string mutation{};
  double drift = 0;  ///< of clocks at most, where the profile has clocks that drift; 0: its own
};

struct Failure {
  std::uint64_t seed = 0;
  /// The seed, what was violated, how to repeat it, and the last events before it.
  std::string text;
};

/// Empty: none. Throws std::invalid_argument for a primitive or a mutation that is none.
std::optional<Failure> first_failure(const Campaign& campaign, Seeds seeds);

/// Plays the seeds of all profiles with all that they are played with, whatever they find, until
/// every branch of the scripts was run. Pairs that run nothing new have fewer turns.
void run_for_branches(Seeds seeds, Branches& branches);
/// Plays these.
void run_for_branches(const Campaign& campaign, Seeds seeds, Branches& branches);

/// All that happens in a seed.
std::vector<std::string> trace_of(const Campaign& campaign, std::uint64_t seed);

}  // namespace sluice::simulation
