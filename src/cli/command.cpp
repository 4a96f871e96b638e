#include "cli/command.hpp"

#include <cstdlib>

#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "sluice/log.hpp"

namespace sluice::cli {
namespace {

void log_warnings(LogLevel level, std::string_view message) {
  if (level >= LogLevel::warning) complain_line(message);
}

}  // namespace

std::string store_url(const Globals& globals) {
  if (!globals.store.empty()) return globals.store;
  if (const char* const set = std::getenv("SLUICE_STORE"); set && *set) return set;
  return "redis://127.0.0.1:6379";
}

Command table_of(Globals& globals, std::initializer_list<MakeCommand> rows) {
  Command root{
      .name = "sluice",
      .summary =
          "Locks, numbers, ids, Bloom filters, flash sales and waiting rooms for programs that run "
          "as many instances",
      .options = {
          {"--store", "URL",
           "redis://[user:password@]host:port[/db], rediss:// (TLS), redis+unix:///path, "
           "redis+sentinel://h1,h2,h3/master, redis+cluster://h1,h2,h3, embedded: (memory) or "
           "embedded:/folder; without it $SLUICE_STORE, else redis://127.0.0.1:6379",
           into(globals.store)},
          {"--json", "", "One JSON object on the last line, for programs", into(globals.json)},
          {"-v, --verbose", "", "Say what is waited for, also where stderr is no terminal",
           into(globals.verbose)}}};
  for (const MakeCommand make : rows) root.commands.push_back(make(globals));
  return root;
}

int run_main(const std::function<int()>& work) {
  prepare_streams();
  set_log_sink(log_warnings);
  try {
    return work();
  } catch (const std::exception& failure) {
    return report(failure);
  }
}

int run_commands(std::initializer_list<MakeCommand> rows, int argc, char** argv) {
  return run_main([&] {
    Globals globals;
    return run_program(
        {.root = table_of(globals, rows), .version = SLUICE_VERSION, .is_part = true},
        {argv + 1, argv + argc});
  });
}

}  // namespace sluice::cli
