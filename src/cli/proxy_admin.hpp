/// The commands that speak with a running proxy, below `sluice proxy`.
#pragma once

#include <memory>
#include <string>

#include "cli/command.hpp"

namespace sluice::cli {

/// Where its administration is: --admin, else the `admin:` of the file of -c.
struct AdminAddress {
  std::string given;
  std::string config = "conf/nutcracker.yml";

  void add_options(CLI::App& command);
  /// Throws Error{bad_argument} when neither says.
  std::string get() const;
};

/// reload, check-config, stats, latency, slowlog, hotkeys, bigvalues, clients, loglevel, drain,
/// upgrade.
void add_proxy_admin(CLI::App& proxy, const Globals& globals, Action& action);
/// top: live.
void add_proxy_top(CLI::App& proxy, const Globals& globals, Action& action);

}  // namespace sluice::cli
