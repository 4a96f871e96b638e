/// The commands that look at a configuration of the proxy, below `sluice proxy`.
#pragma once

#include "cli/command.hpp"

namespace sluice::cli {

/// check, explain, diff, lint, describe.
void add_proxy_inspect(CLI::App& proxy, const Globals& globals, Action& action);

}  // namespace sluice::cli
