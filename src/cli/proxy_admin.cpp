#include "cli/proxy_admin.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/exit_code.hpp"
#include "proxy/config/read.hpp"
#include "proxy/process/admin_client.hpp"

namespace sluice::cli {
namespace {

using Words = std::vector<std::string_view>;

struct AdminVerb {
  const char* name;
  Words words;           ///< what is sent
  const char* argument;  ///< null: none
  const char* help;
};

const AdminVerb verbs[] = {
    {"reload", {"RELOAD"}, nullptr, "Let it read its file again; refused as a whole if it is bad"},
    {"check-config", {"CONFIG", "CHECK"}, nullptr, "What a reload would do"},
    {"stats", {"STATS"}, nullptr, "All counters and latencies, as JSON"},
    {"latency",
     {"LATENCY"},
     "NAME",
     "Pool, kind, name, count, p50, p99, p99.9 and most (us); of one command or server"},
    {"slowlog", {"SLOWLOG", "GET"}, "N", "The slowest requests, newest first"},
    {"slowlog-reset", {"SLOWLOG", "RESET"}, nullptr, "Forget the slow requests"},
    {"hotkeys", {"HOTKEYS"}, "N", "Key, requests a second, share of all"},
    {"bigvalues", {"BIGVALUES"}, "N", "Key, bytes, pool, command, time; largest first"},
    {"clients", {"CLIENTS"}, nullptr, "Who is connected, as JSON"},
    {"loglevel", {"LOGLEVEL"}, "LEVEL", "Tell or set the level of its log, 0 to 11"},
    {"drain", {"DRAIN"}, nullptr, "Let it accept no more, answer what is asked, and end"},
    {"upgrade", {"UPGRADE"}, nullptr, "Let it start its binary anew and hand its sockets on"},
};

nlohmann::json json_of(const Value& value) {
  if (value.is_aggregate()) {
    auto list = nlohmann::json::array();
    for (const auto& item : value.as_items()) list.push_back(json_of(item));
    return list;
  }
  if (value.type() == Value::Type::integer) return value.as_integer();
  if (value.is_null()) return nullptr;
  const auto& text = value.as_text();
  const bool is_json = text.starts_with('{') || text.starts_with('[');
  auto parsed = is_json ? nlohmann::json::parse(text, nullptr, false) : nlohmann::json(text);
  return parsed.is_discarded() ? nlohmann::json(text) : parsed;
}

/// A row of a list is a line; what lies in it is parted by blanks.
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

void print(const Value& reply, bool as_json) {
  if (as_json) {
    using Json = nlohmann::json;
    const Json result{{"ok", true}, {"result", json_of(reply)}};
    fmt::print("{}\n", result.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else if (reply.is_aggregate()) {
    for (const auto& row : reply.as_items()) fmt::print("{}\n", plain(row));
  } else {
    fmt::print("{}\n", plain(reply));
  }
}

int run(const Globals& globals, const AdminAddress& at, Words words, const std::string& argument) {
  if (!argument.empty()) words.push_back(argument);
  proxy::AdminClient client{at.get()};
  const Value reply = client.ask(words);
  if (reply.is_error()) {
    std::string_view why = reply.as_text();
    if (why.starts_with("ERR ")) why.remove_prefix(4);
    fmt::print(stderr, "sluice: {}\n", why);
    return exit_refused;
  }
  print(reply, globals.json);
  return exit_ok;
}

}  // namespace

void AdminAddress::add_options(CLI::App& command) {
  command.add_option("--admin", given, "Its administration: host:port or /path of a socket");
  command.add_option("-c,--conf-file", config, "Its file, whose `sluice: admin:` says where")
      ->capture_default_str();
}

std::string AdminAddress::get() const {
  if (!given.empty()) return given;
  auto from_file = proxy::load_config(config).process.admin;
  if (from_file.empty())
    throw Error{Errc::bad_argument,
                fmt::format("{} has no `admin:` below `sluice:`; add one (a path, or host:port on "
                            "loopback) and restart, or give --admin",
                            config)};
  return from_file;
}

void add_proxy_admin(CLI::App& proxy, const Globals& globals, Action& action) {
  for (const auto& verb : verbs) {
    auto* const command = proxy.add_subcommand(verb.name, verb.help);
    const auto at = std::make_shared<AdminAddress>();
    const auto argument = std::make_shared<std::string>();
    at->add_options(*command);
    if (verb.argument) command->add_option(verb.argument, *argument);
    command->callback([&globals, &action, &verb, at, argument] {
      action = [&globals, &verb, at, argument] { return run(globals, *at, verb.words, *argument); };
    });
  }
}

}  // namespace sluice::cli
