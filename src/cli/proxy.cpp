#include "cli/proxy.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "cli/command.hpp"
<<<<<<< HEAD
#include "cli/exit_code.hpp"
#include "cli/proxy_admin.hpp"
#include "proxy/config/as_json.hpp"
#include "proxy/config/describe.hpp"
#include "proxy/config/read.hpp"
    == == ==
    =
#include "cli/proxy_admin.hpp"
#include "cli/proxy_inspect.hpp"
        >>>>>>> run
#include "proxy/process/options.hpp"
#include "proxy/process/run.hpp"

        namespace sluice::cli {
  namespace {

<<<<<<< HEAD
  struct ProxyArgs {
    std::string file = "conf/nutcracker.yml";  // as nutcracker
    std::string pool;                          // empty: all
    std::string key;
    bool key_is_hex = false;
    std::string before, after;
    std::string keys_file;
    bool markdown = false;
  };

  void print(const nlohmann::json& json) { fmt::print("{}\n", proxy::written(json)); }

  /// As `nutcracker -t`, and says what is wrong.
  int check(const Globals& globals, const ProxyArgs& args) {
    std::string problem;
    try {
      proxy::check_config(args.file);
    } catch (const Error& wrong) {
      problem = wrong.message();
    }
    const bool ok = problem.empty();
    if (!ok) fmt::print(stderr, "sluice: {}\n", problem);
    fmt::print(stderr, "{}", proxy::test_conf_text(args.file, ok));
    if (globals.json) print({{"ok", ok}, {"problem", problem}});
    return ok ? exit_ok : exit_check_failed;
=======
  /// Where the flags of nutcracker begin: the words before them count as its name. 0: the line is no such line.
  int flags_begin(int argc, char** argv) {
    const std::string_view program{argc > 0 ? argv[0] : ""};
    if (program.substr(program.rfind('/') + 1) == "nutcracker") return 1;
    if (argc < 2 || std::string_view{argv[1]} != "proxy") return 0;
    const std::string_view next{argc > 2 ? argv[2] : ""};
    const bool wants_help = next == "--help" || next == "-h";  // which tells the other words, too
    return (next.empty() || next.starts_with('-')) && !wants_help ? 2 : 0;
>>>>>>> run
  }

  }  // namespace

  std::optional<int> run_as_nutcracker(int argc, char** argv) {
    const int begin = flags_begin(argc, argv);
    if (begin == 0) return std::nullopt;
    const auto line = proxy::parse_command_line(argc - begin + 1, argv + begin - 1, SLUICE_VERSION);
    fmt::print(stderr, "{}", line.text);
    if (line.exit_code) return line.exit_code;
    return proxy::run(line.options, {.version = SLUICE_VERSION});
  }

<<<<<<< HEAD
  add_with_file("check", "Whether the file is right (-t)", check);
  auto* const explained =
      add_with_file("explain", "Where a key goes: hash, point, server", explain);
  explained->add_option("KEY", args->key)->required();
  explained->add_option("--pool", args->pool, "In this pool alone");
  explained->add_flag("--hex", args->key_is_hex, "KEY is written in hexadecimal");
  auto* const compared = add("diff", "What changes, and the share of keys that move", diff);
  compared->add_option("OLD", args->before)->required();
  compared->add_option("NEW", args->after)->required();
  compared->add_option("--keys", args->keys_file, "Shares of the keys in this file, one a line");
  add_with_file("lint", "What is allowed and seldom meant; 1 if there is more than notes", lint);
  auto* const described =
      add_with_file("describe", "The file with everything that it leaves unsaid", describe);
  described->add_flag("--markdown", args->markdown, "Instead, the tables of all settings");
=======
  void add_proxy_command(CLI::App & app, const Globals& globals, Action& action) {
    auto* const command = app.add_subcommand(
        "proxy", "Run the proxy in the place of twemproxy, look at its file, speak with it");
    command->require_subcommand(1);
    command->footer("Without a word of these it runs, with the flags of nutcracker:\n\n" +
                    proxy::usage_text());
    add_proxy_inspect(*command, globals, action);
>>>>>>> run
  add_proxy_admin(*command, globals, action);
  add_proxy_top(*command, globals, action);
}

}  // namespace sluice::cli
