/// A command that runs while something is held: a lock of any kind, permits, nothing at all.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace sluice::cli {

/// The options that all such commands have.
struct RunArgs {
  std::string name;
  std::string wait = "1d";
  std::string lease = "30s";
  std::string grace = "5s";
  std::string label;
  std::vector<std::string> command;

  /// What operators see: --label, else the command's first word.
  std::string label_or_command() const;
};

/// NAME, --wait and the command. `what`: "the lock".
void add_run_options(CLI::App& command, RunArgs& args, const std::string& what);
/// --lease, --grace and --label, for what is held.
void add_hold_options(CLI::App& command, RunArgs& args);

/// What is held, whatever it is.
struct Holding {
  std::function<bool()> valid;
  std::stop_token lost;
  std::function<void()> release;
  std::optional<std::uint64_t> token;  ///< none: there is no order among holds
};

template <class Held>
Holding holding_of(Held held, std::optional<std::uint64_t> token) {
  const auto shared = std::make_shared<Held>(std::move(held));
  return {.valid = [shared] { return shared->valid(); },
          .lost = shared->lost(),
          .release = [shared] { shared->release().get(); },
          .token = token};
}

/// How to get it: waits up to so long, or until the stop. Empty: refused.
using Acquire =
    std::function<std::optional<Holding>(std::chrono::milliseconds wait, std::stop_token stop)>;
/// Opens the stores, once the signals are cared for: before any thread is there.
using Prepare = std::function<Acquire()>;

/// What to say: "lock 'deploy'", and of what stood in the way.
struct Words {
  std::string what;
  std::string busy = "is held by another";
  std::string done = "released";  ///< the outcome when all went well
};

/// Waits, runs the command, gives back. While it waits a signal ends the program; while the command
/// runs signals are passed on to it, and when the hold is lost it gets TERM, and KILL after
/// --grace. The exit code: the command's, or one of ours.
int hold_and_run(const Globals& globals, const RunArgs& args, const Words& words,
                 const Prepare& prepare);

}  // namespace sluice::cli
