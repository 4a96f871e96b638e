/// `sluice lock NAME -- CMD`: runs a command while the lock is held, as flock(1) does.
#include "sluice/lock.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/child.hpp"
#include "cli/command.hpp"
#include "cli/exit_code.hpp"

namespace sluice::cli {
namespace {

struct LockArgs {
  std::string name;
  std::string wait = "1d";
  std::string lease = "30s";
  std::string grace = "5s";
  std::vector<std::string> command;
};

void print_json(bool ok, std::string_view outcome, int exit_code, std::uint64_t token) {
  fmt::print("{}\n", nlohmann::json{{"ok", ok},
                                    {"outcome", outcome},
                                    {"exit_code", exit_code},
                                    {"token", std::to_string(token)}}
                         .dump());
}

int start_failure(const std::system_error& failure) {
  fmt::print(stderr, "sluice: cannot run '{}'\n", failure.what());
  return failure.code() == std::errc::no_such_file_or_directory ? exit_not_found
                                                                : exit_not_executable;
}

int run_locked(const Globals& globals, const LockArgs& args) {
  block_child_signals();
  const auto wait = parse_duration(args.wait);
  const auto grace = parse_duration(args.grace);
  const auto store = open_store(globals);
  Mutex mutex{*store, args.name, MutexOptions{.lease = parse_duration(args.lease)}};
  auto held = mutex.try_acquire(wait).get();
  if (!held) {
    fmt::print(stderr, "sluice: lock '{}' is held by another; waited {}. Wait longer with --wait\n",
               args.name, args.wait);
    if (globals.json) print_json(false, "busy", exit_refused, 0);
    return exit_refused;
  }
  const std::uint64_t token = held->token().value;
  ChildResult result;
  try {
    ::setenv("SLUICE_TOKEN", std::to_string(token).c_str(), 1);
    result = run_child(args.command, held->lost(), grace);
  } catch (const std::system_error& failure) {
    held->release().get();
    return start_failure(failure);
  }
  if (result.ended_by_us || !held->valid()) {
    fmt::print(stderr,
               "sluice: lock '{}' was lost before the command had ended; another may hold it now\n",
               args.name);
    if (globals.json) print_json(false, "lost", exit_lost, token);
    return exit_lost;
  }
  held->release().get();
  if (globals.json) print_json(true, "released", result.exit_code, token);
  return result.exit_code;
}

}  // namespace

void add_lock_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const command = app.add_subcommand(
      "lock", "Run a command while a lock is held; it finds the fencing token in $SLUICE_TOKEN");
  const auto args = std::make_shared<LockArgs>();
  command->add_option("NAME", args->name, "Name of the lock")->required();
  command->add_option("--wait", args->wait, "How long to wait for the lock: 0, 250ms, 5s, 2m")
      ->capture_default_str();
  command
      ->add_option("--lease", args->lease,
                   "How long a dead holder keeps it; renewed while the command runs")
      ->capture_default_str();
  command->add_option("--grace", args->grace, "Between TERM and KILL when the lock is lost")
      ->capture_default_str();
  command->add_option("CMD", args->command, "The command, after --")->required();
  command->callback([&globals, &action, args] {
    action = [&globals, args] { return run_locked(globals, *args); };
  });
}

}  // namespace sluice::cli
