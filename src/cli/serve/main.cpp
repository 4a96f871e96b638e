/// The program sluice-serve, which `sluice serve` becomes: sales over HTTP.
#include <string_view>

#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/serve/commands.hpp"
#include "sluice/log.hpp"

namespace sluice::cli {
namespace {

void log_to_stderr(LogLevel level, std::string_view message) {
  if (level >= LogLevel::info) complain_line(message);
}

constexpr const char* details =
    R"(Without --store and --orders everything lies in the folder of --data: an embedded engine and
SQLite. With them it is the same service on Redis, Valkey, Sentinels or a cluster, and on PostgreSQL
or MariaDB.

Examples:
  sluice serve --sale maotai=100
  sluice serve --sales sales.json --store redis://10.0.0.5 --orders postgresql://shop@10.0.0.6/shop
  sluice serve token --keys token_keys --buyer ann --sale maotai --for 1h)";

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice::cli;
  prepare_streams();
  sluice::set_log_sink(log_to_stderr);
  // The program's name, and "serve" where `sluice serve` became this process.
  const int begin = argc > 1 && std::string_view{argv[1]} == "serve" ? 2 : 1;
  try {
    ServeArgs args;
    Command root{
        .name = "sluice serve",
        .summary = "Serve the sales of a store over HTTP, and bring their orders into a database",
        .options = serve_options(args),
        .commands = {token_command(args.json), key_command(args.json), simulate_command()},
        .details = details,
        .action = [&args] { return serve(args); }};
    return run_program({std::move(root), SLUICE_VERSION}, {argv + begin, argv + argc});
  } catch (const std::exception& failure) {
    return report(failure);
  }
}
