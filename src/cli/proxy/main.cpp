/// The program sluice-proxy, which `sluice proxy` becomes: it runs the proxy in the way of
/// nutcracker, looks at its file, and speaks with a running one.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/proxy/commands.hpp"
#include "proxy/process/options.hpp"
#include "proxy/process/run.hpp"
#include "sluice/log.hpp"

namespace sluice::cli {
namespace {

void log_to_stderr(LogLevel level, std::string_view message) {
  if (level >= LogLevel::warning) complain_line(message);
}

/// How many words of the line stand before the proxy's own: the program's name, and "proxy" where
/// `sluice proxy` became this process.
int own_words_begin(int argc, char** argv) {
  return argc > 1 && std::string_view{argv[1]} == "proxy" ? 2 : 1;
}

/// Whether nutcracker's flags follow, or nothing: the line asks to run the proxy.
bool asks_to_run(std::string_view program, std::string_view first_word) {
  if (program.substr(program.rfind('/') + 1) == "nutcracker") return true;
  const bool wants_help =
      first_word == "--help" || first_word == "-h";  // it tells the commands, too
  return first_word.empty() ||
         (first_word.starts_with('-') && !wants_help && first_word != "--json");
}

int run_proxy(int argc, char** argv, int begin) {
  namespace process = proxy::process;
  const auto line = process::parse_command_line(argc - begin + 1, argv + begin - 1, SLUICE_VERSION);
  std::fputs(line.text.c_str(), stderr);
  if (line.exit_code) return *line.exit_code;
  return process::run(line.options,
                      {.version = SLUICE_VERSION, .arguments = {argv, argv + argc}, .path = {}});
}

int run_command(int argc, char** argv, int begin) {
  bool json = false;
  Command root{
      .name = "sluice proxy",
      .summary = "Run the proxy in the place of twemproxy, inspect its file, speak with it",
      .options = {{"--json", "", "JSON in one line, for programs", into(json)}},
      .details = "Without a command it runs, with the flags of nutcracker:\n\n" +
                 proxy::process::usage_text()};
  for (auto& commands : {inspect_commands(json), admin_commands(json)})
    root.commands.insert(root.commands.end(), commands.begin(), commands.end());
  root.commands.push_back(move_command());
  root.commands.push_back(top_command(json));
  return run_program({std::move(root), SLUICE_VERSION}, {argv + begin, argv + argc});
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice::cli;
  prepare_streams();
  sluice::set_log_sink(log_to_stderr);
  const int begin = own_words_begin(argc, argv);
  try {
    return asks_to_run(argc > 0 ? argv[0] : "", argc > begin ? argv[begin] : "")
               ? run_proxy(argc, argv, begin)
               : run_command(argc, argv, begin);
  } catch (const std::exception& failure) {
    return report(failure);
  }
}
