/// `sluice proxy`: what can be known of its configuration without running it.
#include "cli/proxy_inspect.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <optional>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "proxy/config/as_json.hpp"
#include "proxy/config/describe.hpp"
#include "proxy/config/read.hpp"
#include "proxy/process/options.hpp"
#include "proxy/process/run.hpp"
#include "sluice/error.hpp"

namespace sluice::cli {
namespace {

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
    proxy::test_config(args.file);
  } catch (const Error& wrong) {
    problem = wrong.message();
  }
  const bool ok = problem.empty();
  if (!ok) fmt::print(stderr, "sluice: {}\n", problem);
  fmt::print(stderr, "{}\n", proxy::test_conf_text(args.file, ok));
  if (globals.json) print({{"ok", ok}, {"problem", problem}});
  return ok ? exit_ok : exit_check_failed;
}

std::string bytes_of_hex(const std::string& hex) {
  const bool digits = hex.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!digits || hex.size() % 2 != 0)
    throw Error{Errc::bad_argument,
                fmt::format("'{}' is not hexadecimal; write two digits for each byte", hex)};
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

int explain(const Globals& globals, const ProxyArgs& args) {
  const auto config = proxy::load_config(args.file);
  const auto key = args.key_is_hex ? bytes_of_hex(args.key) : args.key;
  auto all = nlohmann::json::array();
  for (const auto& pool : config.pools) {
    if (!args.pool.empty() && pool.name != args.pool) continue;
    const auto explanation = proxy::explain(pool, key);
    all.push_back(proxy::as_json(explanation));
    if (!globals.json) fmt::print("{}\n", proxy::text_of(explanation));
  }
  if (all.empty())
    throw Error{Errc::bad_argument, fmt::format("{} has no pool '{}'", args.file, args.pool)};
  if (globals.json) print(all);
  return exit_ok;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  if (path.empty()) return lines;
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) lines.push_back(std::move(line));
  if (lines.empty())
    throw Error{Errc::bad_argument,
                fmt::format("{}: there are no keys in it, or it cannot be read", path)};
  return lines;
}

int diff(const Globals& globals, const ProxyArgs& args) {
  const auto difference = proxy::diff(proxy::load_config(args.before),
                                      proxy::load_config(args.after), lines_of(args.keys_file));
  if (globals.json)
    print(proxy::as_json(difference));
  else
    fmt::print("{}", proxy::text_of(difference));
  return exit_ok;
}

std::optional<unsigned> permissions_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return facts.st_mode & 07777U;
}

int lint(const Globals& globals, const ProxyArgs& args) {
  const auto findings =
      proxy::lint(proxy::load_config(args.file), {.permissions = permissions_of(args.file)});
  if (globals.json)
    print(proxy::as_json(findings));
  else
    fmt::print("{}", proxy::text_of(findings, args.file));
  const bool is_bad = std::ranges::any_of(findings, [](const proxy::Finding& finding) {
    return finding.severity != proxy::Severity::note;
  });
  return is_bad ? exit_check_failed : exit_ok;
}

int describe(const Globals& globals, const ProxyArgs& args) {
  if (args.markdown) {
    fmt::print("{}", proxy::settings_as_markdown());
    return exit_ok;
  }
  const auto config = proxy::load_config(args.file);
  if (globals.json)
    print(proxy::as_json(config));
  else
    fmt::print("{}", proxy::describe(config));
  return exit_ok;
}

using Verb = int (*)(const Globals& globals, const ProxyArgs& args);

}  // namespace

void add_proxy_inspect(CLI::App& proxy, const Globals& globals, Action& action) {
  const auto args = std::make_shared<ProxyArgs>();
  const auto add = [&](const char* name, const char* help, Verb verb) {
    auto* const added = proxy.add_subcommand(name, help);
    added->callback([&globals, &action, args, verb] {
      action = [&globals, args, verb] { return verb(globals, *args); };
    });
    return added;
  };
  const auto add_with_file = [&](const char* name, const char* help, Verb verb) {
    auto* const added = add(name, help, verb);
    added->add_option("-c,--conf-file", args->file, "The configuration")->capture_default_str();
    return added;
  };

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
}

}  // namespace sluice::cli
