#include "cli/proxy.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string_view>

#include "cli/command.hpp"
#include "cli/proxy_admin.hpp"
#include "cli/proxy_inspect.hpp"
#include "proxy/process/options.hpp"
#include "proxy/process/run.hpp"

namespace sluice::cli {
namespace {

/// Where the flags of nutcracker begin: the words before them count as its name. 0: the line is no
/// such line.
int flags_begin(int argc, char** argv) {
  const std::string_view program{argc > 0 ? argv[0] : ""};
  if (program.substr(program.rfind('/') + 1) == "nutcracker") return 1;
  if (argc < 2 || std::string_view{argv[1]} != "proxy") return 0;
  const std::string_view next{argc > 2 ? argv[2] : ""};
  const bool wants_help = next == "--help" || next == "-h";  // which tells the other words, too
  return (next.empty() || next.starts_with('-')) && !wants_help ? 2 : 0;
}

}  // namespace

std::optional<int> run_as_nutcracker(int argc, char** argv) {
  const int begin = flags_begin(argc, argv);
  if (begin == 0) return std::nullopt;
  const auto line = proxy::parse_command_line(argc - begin + 1, argv + begin - 1, SLUICE_VERSION);
  fmt::print(stderr, "{}", line.text);
  if (line.exit_code) return line.exit_code;
  return proxy::run(line.options,
                    {.version = SLUICE_VERSION, .arguments = {argv, argv + argc}, .path = {}});
}

void add_proxy_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const command = app.add_subcommand(
      "proxy", "Run the proxy in the place of twemproxy, look at its file, speak with it");
  command->require_subcommand(1);
  command->footer("Without a word of these it runs, with the flags of nutcracker:\n\n" +
                  proxy::usage_text());
  add_proxy_inspect(*command, globals, action);
  add_proxy_admin(*command, globals, action);
  add_proxy_top(*command, globals, action);
}

}  // namespace sluice::cli
