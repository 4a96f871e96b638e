/// A command that runs while something is held: a lock of any kind, permits, nothing at all.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace sluice::cli {

/// The options that all such commands have.
struct RunArgs {
  std::string name;
  std::chrono::milliseconds wait = std::chrono::hours{24};
  std::chrono::milliseconds lease = std::chrono::seconds{30};
  std::chrono::milliseconds grace = std::chrono::seconds{5};
  std::string label;
  std::vector<std::string> command;
  std::string shell_command;  ///< of -c

  /// What operators see: --label, else the command's first word.
  std::string label_or_command() const;
};

/// The command to run, as an argument.
Argument command_argument(RunArgs& args);
/// How long to wait, and -c. `what`: "the lock".
std::vector<Option> wait_options(RunArgs& args, const std::string& what);
/// `NAME CMD...`, with the options of waiting and of holding behind those of its own.
Command command_that_holds(std::string name, std::string summary, RunArgs& args,
                           const std::string& what, std::vector<Option> options);

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

/// What can be held, in a store that is open.
struct Resource {
  /// Waits up to so long, or until the stop. Empty: refused.
  std::function<std::optional<Holding>(std::chrono::milliseconds wait, std::stop_token stop)>
      acquire;
  /// Why a waiter waits: "it is held by ...". Called by another thread than `acquire`.
  std::function<std::string()> obstacle;
  /// Stores that could not be opened are missing: open them anew before the next try.
  bool incomplete = false;
};

/// Opens the store, in time. Throws Error. Called again when the store could not be reached or was
/// in use.
using Prepare = std::function<Resource(const OpenOptions& how)>;

/// What to say: "lock 'deploy'", and of what stood in the way.
struct Phrases {
  std::string what;
  std::string busy = "is held by another";
  std::string done = "released";  ///< the outcome when all went well
  bool needs_command = true;
};

/// Waits, runs the command, gives back. A store that cannot be reached, or is in use by another
/// process, is tried again until the wait is over. While it waits a signal ends the program; while
/// the command runs signals are passed on to it, and when the hold is lost it gets TERM, and KILL
/// after --grace. The exit code: the command's, or one of ours.
int hold_and_run(const Globals& globals, const RunArgs& args, const Phrases& phrases,
                 const Prepare& prepare);

}  // namespace sluice::cli
