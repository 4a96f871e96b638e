/// The program `sluice`: every noun of the library from the command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/proxy.hpp"
#include "sluice/log.hpp"

namespace {

void log_to_stderr(sluice::LogLevel level, std::string_view message) {
  if (level >= sluice::LogLevel::warning) fmt::print(stderr, "sluice: {}\n", message);
}

int run(int argc, char** argv) {
  using namespace sluice::cli;
  CLI::App app{"Locks, numbers, ids and flash sales for programs that run as many instances.",
               "sluice"};
  Globals globals;
  Action action;
  app.add_option("--store", globals.store,
                 "redis://[user:password@]host:port[/db], redis+unix:///path, embedded: (memory) "
                 "or embedded:/folder; "
                 "default $SLUICE_STORE, else redis://127.0.0.1:6379");
  app.add_flag("--json", globals.json, "One JSON object on the last line, for programs");
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(exit_code_help());
  add_lock_command(app, globals, action);
  add_semaphore_command(app, globals, action);
  add_latch_command(app, globals, action);
  add_locks_command(app, globals, action);
  add_number_command(app, globals, action);
  add_id_command(app, globals, action);
  add_sale_command(app, globals, action);
  add_proxy_command(app, globals, action);
  add_demo_command(app, globals, action);
  add_bench_command(app, globals, action);
  add_doctor_command(app, globals, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& bad) {
    fmt::print(stderr, "sluice: {} (see sluice --help)\n", bad.what());
    return exit_usage;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  sluice::set_log_sink(log_to_stderr);
  try {
    if (const auto code = sluice::cli::run_as_nutcracker(argc, argv)) return *code;
    return run(argc, argv);
  } catch (const std::exception& failure) {
    return sluice::cli::report(failure);
  }
}
