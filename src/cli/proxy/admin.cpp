#include "proxy/process/admin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/json.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/proxy/commands.hpp"
#include "proxy/config/read.hpp"
#include "proxy/process/admin_client.hpp"

namespace sluice::cli {
namespace {

using proxy::process::AdminCommand;

/// `is_json`: its text is JSON already.
Json reply_json(const Value& value, bool is_json) {
  if (value.is_aggregate()) {
    auto list = Json::array();
    for (const auto& item : value.as_items()) list.add(reply_json(item, false));
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
    const auto result = Json::object({{"ok", true}, {"result", reply_json(reply, is_json)}});
    put("{}\n", result.text());
  } else if (reply.is_aggregate()) {
    for (const auto& row : reply.as_items()) put("{}\n", plain(row));
  } else {
    put("{}\n", plain(reply));
  }
}

struct AdminArgs {
  AdminAddress at;
  std::string argument;
};

int run(bool json, const AdminCommand& command, const AdminArgs& args) {
  const auto blank = std::min(command.name.find(' '), command.name.size());
  std::vector<std::string_view> words{command.name.substr(0, blank)};
  if (blank < command.name.size()) words.push_back(command.name.substr(blank + 1));
  if (!args.argument.empty()) words.push_back(args.argument);
  proxy::process::AdminClient client{args.at.get()};
  const Value reply = client.ask(words);
  if (reply.is_error()) {
    std::string_view why = reply.as_text();
    if (why.starts_with("ERR ")) why.remove_prefix(4);
    complain("{}", why);
    return exit_refused;
  }
  print(reply, json, command.replies_json);
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
  for (const AdminCommand& row : proxy::process::admin_commands()) {
    if (row.verb.empty()) continue;
    const auto args = std::make_shared<AdminArgs>();
    auto& command = commands.emplace_back(
        Command{.name = std::string{row.verb}, .summary = std::string{row.help}});
    args->at.add_options(command);
    if (!row.argument.empty())
      command.arguments = {{std::string{row.argument}, std::string{row.argument_help},
                            into(args->argument), /*required=*/false}};
    command.action = [&json, &row, args] { return run(json, row, *args); };
  }
  return commands;
}

}  // namespace sluice::cli
