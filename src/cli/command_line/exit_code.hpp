/// What the programs exit with, and how they say what went wrong. The codes follow sysexits.h where
/// it has a word for it, and keep away from what a command under a lock is likely to return.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <new>
#include <span>
#include <string_view>

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

struct ExitCodeRow {
  ExitCode code;
  std::string_view meaning;
};
/// All codes with what they mean; the help, the man pages and the documentation print this table.
std::span<const ExitCodeRow> exit_code_rows() noexcept;

/// One line on stderr, without the passwords of URLs. What cannot be written is dropped: a message
/// must never end a program that holds a lock.
void complain_line(std::string_view message) noexcept;
template <class... Args>
void complain(fmt::format_string<Args...> form, Args&&... args) noexcept {
  try {
    complain_line(fmt::format(form, std::forward<Args>(args)...));
  } catch (const std::bad_alloc&) {
    complain_line("memory is full");
  }
}

/// Complains of `failure`: where (unless that is empty), what, what to do, and whether the effect
/// may have happened. The code to exit with.
ExitCode report(const std::exception& failure, std::string_view where = {}) noexcept;

}  // namespace sluice::cli
