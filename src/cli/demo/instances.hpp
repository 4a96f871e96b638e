/// The demo's other processes: each serves a part of the crowd and reports its tally.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/demo/crowd.hpp"

namespace sluice::cli {

struct InstancePlan {
  std::string store;
  std::string sale;
  std::uint64_t buyers = 0;
  int instances = 1;
};

/// Starts the processes, lets them click all at once, and adds up what they report. Blocks until
/// the last has ended.
/// Throws std::runtime_error when one of them fails.
Tally hold_sale_in_processes(const InstancePlan& plan);

/// What each of them runs: says "ready", waits for the end of its standard input, holds its part,
/// prints its tally.
int serve_instance(const std::string& store, const std::string& sale, const Crowd& crowd);

}  // namespace sluice::cli
