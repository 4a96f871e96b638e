/// The program sluice-engine, which `sluice engine` becomes: the engine at a port, and its folders.
#include <string_view>

#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/engine/commands.hpp"
#include "sluice/log.hpp"

namespace sluice::cli {
namespace {

void log_to_stderr(LogLevel level, std::string_view message) {
  if (level >= LogLevel::info) complain_line(message);
}

constexpr const char* details =
    R"(It speaks Redis's protocol, and keeps its data in a folder as `embedded:/FOLDER` does, so
that a program goes from the one to the other, and to a real Redis, by its URL alone.

Examples:
  sluice engine serve /var/lib/app
  sluice engine serve --config /etc/redis/redis.conf --io-threads 2
  sluice engine check /var/lib/app
  sluice engine move redis://127.0.0.1:6379 embedded:/var/lib/app)";

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice::cli;
  prepare_streams();
  sluice::set_log_sink(log_to_stderr);
  const int begin = argc > 1 && std::string_view{argv[1]} == "engine" ? 2 : 1;
  try {
    EngineArgs args;
    Command root{.name = "sluice engine",
                 .summary = "Serve a folder of the embedded engine at a port, or look after it",
                 .options = {{"--json", "", "Print JSON", into(args.json)}},
                 .commands = engine_commands(args),
                 .details = details};
    return run_program({std::move(root), SLUICE_VERSION}, {argv + begin, argv + argc});
  } catch (const std::exception& failure) {
    return report(failure);
  }
}
