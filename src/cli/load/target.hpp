/// The servers that a load test asks.
#pragma once

#include <string>
#include <vector>

#include "cli/load/wire.hpp"

namespace sluice::load {

struct LoadTargets {
  std::vector<LoadTarget> all;
  bool are_tls = false;
};

/// "http://127.0.0.1:8080". Throws Error{bad_argument} for a URL of another kind, and for a machine
/// that is not this one unless that is allowed; {connection} for a name that nobody knows.
LoadTargets targets_of(const std::vector<std::string>& urls, bool allows_remote);

}  // namespace sluice::load
