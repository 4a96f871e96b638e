#include <fmt/format.h>

#include <memory>

#include "base/json.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/proxy/commands.hpp"
#include "proxy/config/read.hpp"
#include "proxy/process/admin_client.hpp"

namespace sluice::cli {
namespace {

using Words = std::vector<std::string_view>;

struct AdminVerb {
  std::string name;
  Words words;  ///< what is sent
  std::string help;
  std::string argument{}, argument_help{};
  bool replies_json = false;
};

const AdminVerb verbs[] = {
    {"reload", {"RELOAD"}, "Let it read its file again; a bad file is refused as a whole"},
    {"check-config", {"CONFIG", "CHECK"}, "What a reload would change"},
    {.name = "stats",
     .words = {"STATS"},
     .help = "All counters and latencies, as JSON",
     .replies_json = true},
    {"latency",
     {"LATENCY"},
     "Pool, kind, name, count, p50, p99, p99.9 and most (us)",
     "NAME",
     "Of this command or server alone"},
    {"slowlog", {"SLOWLOG", "GET"}, "The slowest requests, newest first", "N", "How many (10)"},
    {"slowlog-reset", {"SLOWLOG", "RESET"}, "Forget the slow requests"},
    {"hotkeys",
     {"HOTKEYS"},
     "Key, requests a second and share of all (at least), requests a second (at most)",
     "N",
     "How many (10)"},
    {"bigvalues",
     {"BIGVALUES"},
     "Key, bytes, pool, command, time; largest first",
     "N",
     "How many (10)"},
    {.name = "clients",
     .words = {"CLIENTS"},
     .help = "Who is connected, as JSON",
     .replies_json = true},
    {"loglevel", {"LOGLEVEL"}, "Tell or set the level of its log", "LEVEL", "0 to 11"},
    {"drain", {"DRAIN"}, "Let it accept no more clients, answer what is asked, and end"},
    {"upgrade", {"UPGRADE"}, "Let it start its binary anew and hand it the sockets"},
};

/// `is_json`: its text is JSON already.
Json json_of(const Value& value, bool is_json) {
  if (value.is_aggregate()) {
    auto list = Json::array();
    for (const auto& item : value.as_items()) list.add(json_of(item, false));
    return list;
  }
  if (value.type() == Value::Type::integer) return value.as_integer();
  if (value.is_null()) return {};
  return is_json ? Json::raw(value.as_text()) : Json{value.as_text()};
}

/// A row as a line, its items apart by blanks; "-" is an empty one.
std::string plain(const Value& value) {
  if (value.type() == Value::Type::integer) return std::to_string(value.as_integer());
  if (!value.is_aggregate()) return value.is_null() ? "" : value.as_text();
  std::string line;
  for (const auto& item : value.as_items()) {
    const auto text = plain(item);
    line += (line.empty() ? "" : "  ") + (text.empty() ? std::string{"-"} : text);
  }
  return line;
}

void print(const Value& reply, bool as_json, bool is_json) {
  if (as_json) {
    const auto result = Json::object({{"ok", true}, {"result", json_of(reply, is_json)}});
    fmt::print("{}\n", result.text());
  } else if (reply.is_aggregate()) {
    for (const auto& row : reply.as_items()) fmt::print("{}\n", plain(row));
  } else {
    fmt::print("{}\n", plain(reply));
  }
}

struct AdminArgs {
  AdminAddress at;
  std::string argument;
};

int run(bool json, const AdminVerb& verb, const AdminArgs& args) {
  auto words = verb.words;
  if (!args.argument.empty()) words.push_back(args.argument);
  proxy::process::AdminClient client{args.at.get()};
  const Value reply = client.ask(words);
  if (reply.is_error()) {
    std::string_view why = reply.as_text();
    if (why.starts_with("ERR ")) why.remove_prefix(4);
    complain("{}", why);
    return exit_refused;
  }
  print(reply, json, verb.replies_json);
  return exit_ok;
}

}  // namespace

void AdminAddress::add_options(Command& command) {
  command.options.push_back(
      {"--admin", "ADDRESS", "Its administration: host:port or /path of a socket", into(given)});
  command.options.push_back(
      {"-c, --conf-file", "FILE", "Its file, whose `sluice: admin:` says where", into(config)});
}

std::string AdminAddress::get() const {
  if (!given.empty()) return given;
  auto from_file = proxy::config::load(config).process.admin;
  if (from_file.empty())
    throw Error{Errc::bad_argument,
                fmt::format("{} has no `admin:` below `sluice:`; add one (a path, or host:port on "
                            "loopback) and restart, or give --admin",
                            config)};
  return from_file;
}

std::vector<Command> admin_commands(const bool& json) {
  std::vector<Command> commands;
  for (const auto& verb : verbs) {
    const auto args = std::make_shared<AdminArgs>();
    auto& command = commands.emplace_back(Command{.name = verb.name, .summary = verb.help});
    args->at.add_options(command);
    if (!verb.argument.empty())
      command.arguments = {
          {verb.argument, verb.argument_help, into(args->argument), /*required=*/false}};
    command.action = [&json, &verb, args] { return run(json, verb, *args); };
  }
  return commands;
}

}  // namespace sluice::cli
