/// What the program sluice-engine does.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/command_line/command.hpp"

namespace sluice::cli {

struct EngineArgs {
  std::string folder;
  std::vector<std::string> listen;  ///< empty: 127.0.0.1:6379
  std::string unix_socket;
  std::string health;
  std::string config;
  std::string fsync;        ///< empty: everysec, or as the config says
  std::string file;         ///< of commands
  std::size_t threads = 0;  ///< 0: one, or as the config says
  bool in_memory = false;
  bool json = false;

  // Of move:
  std::string source, target;  ///< URLs
  bool is_still = false, into_used = false, compares_all = false;
  std::chrono::milliseconds hold{};
};

std::vector<Command> engine_commands(EngineArgs& args);
Command move_command(EngineArgs& args);

}  // namespace sluice::cli
