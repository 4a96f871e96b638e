/// Exit codes of the program: one row for each reason, out of the way of what a locked command may
/// return (they follow sysexits.h where it has a word for it).
#pragma once

#include <exception>
#include <string>

#include "sluice/error.hpp"

namespace sluice::cli {

enum ExitCode : int {
  exit_ok = 0,
  exit_check_failed = 1,
  exit_usage = 64,
  exit_bad_data = 65,
  exit_unavailable = 69,
  exit_internal = 70,
  exit_in_use = 73,
  exit_no_space = 74,
  exit_refused = 75,
  exit_lost = 76,
  exit_not_permitted = 77,
  exit_config = 78,
  exit_timeout = 79,
  exit_deadlock = 80,
  exit_not_executable = 126,
  exit_not_found = 127,
};

ExitCode exit_code_of(Errc code) noexcept;

/// For --help.
std::string exit_code_help();

/// One line on stderr: what, where, what to do, and whether the effect may have happened. The code
/// to exit with.
ExitCode report(const std::exception& failure);

}  // namespace sluice::cli
