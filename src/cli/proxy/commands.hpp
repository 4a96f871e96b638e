/// The commands of the program sluice-proxy, beside running it. `json` is the option --json, read
/// when a command runs.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line/command.hpp"

namespace sluice::cli {

/// Where the administration of a running proxy is: --admin, else the `admin:` of the file of -c.
struct AdminAddress {
  std::string given;
  std::string config = "conf/nutcracker.yml";  // as nutcracker

  void add_options(Command& command);
  /// Throws Error{bad_argument} when neither says.
  std::string get() const;
};

/// check, explain, diff, lint, describe: they look at a configuration.
std::vector<Command> inspect_commands(const bool& json);
/// reload, check-config, stats, ...: they speak with a running proxy.
std::vector<Command> admin_commands(const bool& json);
/// move: keys follow the ring.
Command move_command();
/// top: live.
Command top_command(const bool& json);

}  // namespace sluice::cli
