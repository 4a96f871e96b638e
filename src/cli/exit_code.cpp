#include "cli/exit_code.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace sluice::cli {
namespace {

struct Row {
  ExitCode code;
  const char* meaning;
};

constexpr Row rows[] = {
    {exit_ok, "done"},
    {exit_check_failed, "a check of demo, sale audit or doctor failed"},
    {exit_usage, "bad arguments"},
    {exit_bad_data, "wrong type at a key, a damaged file, an answer that makes no sense"},
    {exit_unavailable, "the store or the database cannot be reached"},
    {exit_internal, "a script or the server failed"},
    {exit_in_use, "another process holds the embedded store's folder"},
    {exit_no_space, "disk or memory is full"},
    {exit_refused, "refused: held by another, latch not open, series full, sold out"},
    {exit_lost, "the hold was lost; the command was ended"},
    {exit_not_permitted, "wrong user or password, or read-only"},
    {exit_config, "the name is defined otherwise by another program"},
    {exit_timeout, "no reply in time; the effect may have happened"},
    {exit_deadlock, "locks --graph: there is a deadlock"},
    {exit_not_executable, "lock, semaphore, latch: the command could not be executed"},
    {exit_not_found, "lock, semaphore, latch: the command was not found"},
};

}  // namespace

ExitCode exit_code_of(Errc code) noexcept {
  switch (code) {
    case Errc::bad_argument: return exit_usage;
    case Errc::connection:
    case Errc::database:
    case Errc::closed:
    case Errc::unsynced: return exit_unavailable;
    case Errc::timeout: return exit_timeout;
    case Errc::authentication:
    case Errc::read_only: return exit_not_permitted;
    case Errc::wrong_type:
    case Errc::protocol:
    case Errc::corrupt: return exit_bad_data;
    case Errc::script:
    case Errc::server: return exit_internal;
    case Errc::out_of_space: return exit_no_space;
    case Errc::in_use: return exit_in_use;
    case Errc::config_mismatch: return exit_config;
  }
  return exit_internal;
}

std::string exit_code_help() {
  std::string text =
      "Exit codes (lock, semaphore, latch: the command's own status, 128 + signal when a signal "
      "ended it):\n";
  for (const auto& row : rows)
    text += fmt::format("  {:<4}{}\n", static_cast<int>(row.code), row.meaning);
  return text;
}

ExitCode report(const std::exception& failure) {
  if (const auto* error = dynamic_cast<const Error*>(&failure)) {
    const char* const effect =
        error->effect() == Effect::unknown ? " (the effect may have happened)" : "";
    fmt::print(stderr, "sluice: {}{}\n", error->message(), effect);
    return exit_code_of(error->errc());
  }
  fmt::print(stderr, "sluice: {}\n", failure.what());
  return exit_internal;
}

}  // namespace sluice::cli
