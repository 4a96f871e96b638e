// What can be known of a configuration without running it.
#include "proxy/config/inspect.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <ranges>

#include "base/json.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/proxy/commands.hpp"
#include "proxy/config/read.hpp"
#include "proxy/process/options.hpp"
#include "proxy/process/run.hpp"
#include "sluice/error.hpp"

namespace sluice::cli {
namespace {

struct InspectArgs {
  std::string file = "conf/nutcracker.yml";
  std::string pool;  // empty: all
  std::string key;
  bool key_is_hex = false;
  std::string before, after;
  std::string keys_file, groups_file;
  bool markdown = false;
};

namespace config = proxy::config;

void print(const Json& json) { put("{}\n", json.text()); }

/// As `nutcracker -t`, and says what is wrong.
int check(bool json, const InspectArgs& args) {
  std::string problem;
  try {
    proxy::process::test_config(args.file);
  } catch (const Error& wrong) {
    problem = wrong.message();
  }
  const bool ok = problem.empty();
  if (!ok) complain("{}", problem);
  std::fputs((proxy::process::test_conf_text(args.file, ok) + '\n').c_str(), stderr);
  if (json) print(Json::object({{"ok", ok}, {"problem", problem}}));
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

int explain(bool json, const InspectArgs& args) {
  const auto key = args.key_is_hex ? bytes_of_hex(args.key) : args.key;
  auto all = Json::array();
  bool found = false;
  for (const auto& pool : config::load(args.file).pools) {
    if (!args.pool.empty() && pool.name != args.pool) continue;
    const auto explanation = config::explain(pool, key);
    found = true;
    all.add(json_of(explanation));
    if (!json) put("{}\n", text_of(explanation));
  }
  if (!found)
    throw Error{Errc::bad_argument, fmt::format("{} has no pool '{}'", args.file, args.pool)};
  if (json) print(all);
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

/// Keys of one line have tabs between them.
std::vector<config::KeyGroup> groups_of(const std::string& path) {
  std::vector<config::KeyGroup> groups;
  for (const auto& line : lines_of(path)) {
    auto& group = groups.emplace_back();
    for (const auto key : std::views::split(line, '\t'))
      if (!key.empty()) group.emplace_back(std::string_view{key});
    if (group.empty())
      throw Error{Errc::bad_argument, fmt::format("{}: line {} has no keys", path, groups.size())};
  }
  return groups;
}

int diff(bool json, const InspectArgs& args) {
  const auto difference = config::diff(config::load(args.before), config::load(args.after),
                                       lines_of(args.keys_file), groups_of(args.groups_file));
  if (json)
    print(json_of(difference));
  else
    put("{}", text_of(difference));
  return exit_ok;
}

std::optional<unsigned> permissions_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return facts.st_mode & 07777U;
}

int lint(bool json, const InspectArgs& args) {
  const auto findings =
      config::lint(config::load(args.file), {.permissions = permissions_of(args.file)});
  if (json)
    print(config::json_of(findings));
  else
    put("{}", config::text_of(findings, args.file));
  const bool is_bad = std::ranges::any_of(findings, [](const config::Finding& finding) {
    return finding.severity != config::Severity::note;
  });
  return is_bad ? exit_check_failed : exit_ok;
}

int describe(bool json, const InspectArgs& args) {
  if (args.markdown) {
    put("{}", config::settings_as_markdown());
    return exit_ok;
  }
  const auto loaded = config::load(args.file);
  if (json)
    print(config::json_of(loaded));
  else
    put("{}", config::describe(loaded));
  return exit_ok;
}

}  // namespace

std::vector<Command> inspect_commands(const bool& json) {
  const auto args = std::make_shared<InspectArgs>();
  const auto action = [&json, args](int (*verb)(bool, const InspectArgs&)) {
    return [&json, args, verb] { return verb(json, *args); };
  };
  const Option file{"-c, --conf-file", "FILE", "The configuration", into(args->file)};
  return {
      {.name = "check",
       .summary = "Whether the file is right, as -t; 1 if it is not",
       .options = {file},
       .action = action(check)},
      {.name = "explain",
       .summary = "Where a key goes: hash, point, server",
       .arguments = {{"KEY", "The key", into(args->key)}},
       .options = {file,
                   {"--pool", "POOL", "In this pool alone", into(args->pool)},
                   {"--hex", "", "KEY is written in hexadecimal", into(args->key_is_hex)}},
       .action = action(explain)},
      {.name = "diff",
       .summary = "What changes, and the share of keys that move",
       .arguments = {{"OLD", "The present file", into(args->before)},
                     {"NEW", "The file to be", into(args->after)}},
       .options = {{"--keys", "FILE", "Count the keys of this file, one a line",
                    into(args->keys_file)},
                   {"--together", "FILE",
                    "Name the groups of keys that part: a group a line, tabs between its keys",
                    into(args->groups_file)}},
       .action = action(diff)},
      {.name = "lint",
       .summary = "What the file allows and seldom means; 1 if it finds more than notes",
       .options = {file},
       .action = action(lint)},
      {.name = "describe",
       .summary = "The file with every setting written out",
       .options = {file,
                   {"--markdown", "", "Instead, the tables of all settings", into(args->markdown)}},
       .action = action(describe)},
  };
}

}  // namespace sluice::cli
