#include "cli/command_line/exit_code.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sluice::cli {
namespace {

constexpr ExitCodeRow rows[] = {
    {exit_ok, "done"},
    {exit_check_failed,
     "a check failed: demo, doctor, sale audit, proxy check, proxy lint; sale work and sale dead: "
     "there are dead letters; bloom contains: no key is printed"},
    {exit_usage, "bad arguments, or a bad file of settings"},
    {exit_bad_data, "another kind of value at a key, a damaged file, a reply that makes no sense"},
    {exit_unavailable,
     "the store or the database cannot be reached, or the database failed; there is no Bloom "
     "filter of that name"},
    {exit_internal, "a script or the server failed"},
    {exit_in_use, "another process holds the folder of the embedded store"},
    {exit_no_space, "disk or memory is full, or the output could not be written"},
    {exit_refused,
     "refused: held by another, latch not open, series full, sold out, no such order or "
     "dead letter, a sale that cannot be archived yet; the proxy refused a reload or a command"},
    {exit_lost, "the hold was lost; the command was ended"},
    {exit_not_permitted, "wrong user or password, a command that the user may not run, read-only"},
    {exit_config, "another program has defined the name otherwise"},
    {exit_timeout, "no reply in time; the message says whether the effect may have happened"},
    {exit_deadlock, "locks --graph: there is a deadlock"},
    {exit_not_executable, "lock, semaphore, latch: the command could not be executed"},
    {exit_not_found, "lock, semaphore, latch: the command was not found"},
};

/// Those of URLs that a user wrote: up to the last '@' before a blank, since a password may hold
/// what it should not.
std::string without_passwords(std::string_view message) {
  std::string line{message};
  for (std::size_t at = 0; (at = line.find("://", at)) != std::string::npos; ++at) {
    const auto begin = at + 3;
    const auto end = std::min(line.find_first_of(" \t\r\n", begin), line.size());
    const auto host = line.substr(begin, end - begin).rfind('@');
    const auto colon = line.find(':', begin);
    if (host != std::string::npos && colon < begin + host)
      line.replace(colon + 1, begin + host - colon - 1, "***");
  }
  return line;
}

void write_to_stderr(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

ExitCode exit_code_of(Errc code) noexcept {
  switch (code) {
    case Errc::bad_argument: return exit_usage;
    case Errc::connection:
    case Errc::database:
    case Errc::closed:
    case Errc::unsynced:
    case Errc::overloaded: return exit_unavailable;
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

std::span<const ExitCodeRow> exit_code_rows() noexcept { return rows; }

void complain_line(std::string_view message) noexcept {
  try {
    std::string line = "sluice: ";
    line.append(without_passwords(message)).append("\n");
    write_to_stderr(line);
  } catch (const std::bad_alloc&) {
    write_to_stderr("sluice: memory is full\n");
  }
}

ExitCode report(const std::exception& failure, std::string_view where) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(&failure)) {
    complain_line("memory is full");
    return exit_no_space;
  }
  const auto* const error = dynamic_cast<const Error*>(&failure);
  const std::string_view message = error ? std::string_view{error->message()} : failure.what();
  const bool unknown = error && error->effect() == Effect::unknown;
  complain("{}{}{}{}", where, where.empty() ? "" : ": ", message,
           unknown ? " (the effect may have happened)" : "");
  return error ? exit_code_of(error->errc()) : exit_internal;
}

}  // namespace sluice::cli
