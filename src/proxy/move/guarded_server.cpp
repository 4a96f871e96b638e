#include "proxy/move/guarded_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/integer.hpp"
#include "resp/command_table.hpp"
#include "resp/writer.hpp"
#include "sluice/clock.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::move {
namespace {

using namespace std::chrono_literals;

constexpr auto longest_command = 60s;                 // a large key
constexpr std::string_view migrate_timeout = "1000";  // ms
constexpr std::string_view keys_a_scan = "500";
constexpr std::string_view default_user = "default";
constexpr auto time_to_log_in = 1s;
constexpr auto look_again = 5ms;

/// What the user of the move may do beyond the user before.
constexpr std::string_view further_rights[] = {"+migrate", "+restore", "+select", "+auth",
                                               "+scan",    "+memory",  "+info",   "+dbsize",
                                               "+ping",    "+client",  "+acl"};

/// The rules of a line of ACL LIST ("user NAME rule rule ..."); those in parentheses are one.
std::vector<std::string> rules_of(std::string_view line) {
  std::vector<std::string> rules;
  int depth = 0;
  std::string rule;
  for (const char c : line) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ' ' || depth != 0)
      rule += c;
    else
      rules.push_back(std::exchange(rule, {}));
  }
  rules.push_back(std::move(rule));
  rules.erase(rules.begin(), rules.begin() + std::min<std::ptrdiff_t>(2, std::ssize(rules)));
  return rules;
}

bool is_about_login(std::string_view rule) {
  return rule == "on" || rule == "off" || rule == "nopass" || rule.starts_with('#');
}

}  // namespace

GuardedServer::GuardedServer(net::Endpoint endpoint, MoveUser before, MoveUser during,
                             std::string after, Tls tls)
    : endpoint_(std::move(endpoint)),
      name_(net::to_string(endpoint_)),
      before_(std::move(before)),
      during_(std::move(during)),
      after_(std::move(after)),
      tls_(std::move(tls)) {}

void GuardedServer::refuse(std::string_view command, const Value& error) const {
  throw Error{Errc::bad_argument,
              fmt::format("server {} refuses {}: {}", name_, command, error.as_text())};
}

bool GuardedServer::log_in(const MoveUser& user) {
  if (user.password.empty())
    return !line_->ask(std::initializer_list<std::string_view>{"PING"}).is_error();
  const std::initializer_list<std::string_view> words{"AUTH", user.name, user.password};
  return !line_->ask({words.begin(), words.size()}).is_error();
}

void GuardedServer::connect() {
  line_.emplace(name_, longest_command, process::AdminClient::Peer::server, tls_);
  database_ = 0;
  if (log_in(during_)) return;
  if (!log_in(before_)) {
    line_.reset();
    throw Error{
        Errc::bad_argument,
        fmt::format("server {}: it takes neither the user '{}' of the file nor that of the move",
                    name_, before_.name)};
  }
  // It is new, or was started again and has forgotten its users.
  if (is_admitted_) make_user();
  if (is_fenced_) fence();
}

Value GuardedServer::ask(std::span<const std::string_view> words) {
  if (!line_) connect();
  try {
    return line_->ask(words);
  } catch (const Error&) {
    line_.reset();
    throw;
  }
}

Value GuardedServer::order(std::initializer_list<std::string_view> words) {
  auto reply = ask(words);
  if (reply.is_error()) refuse(*words.begin(), reply);
  return reply;
}

void GuardedServer::make_user() {
  const auto list = order({"ACL", "LIST"});
  const auto head = fmt::format("user {} ", before_.name);
  std::vector<std::string> words{"ACL", "SETUSER", during_.name, "reset"};
  bool is_known = false;
  for (const auto& line : list.as_items()) {
    if (!line.as_text().starts_with(head)) continue;
    is_known = true;
    for (auto& rule : rules_of(line.as_text()))
      if (!is_about_login(rule)) words.push_back(std::move(rule));
  }
  if (!is_known)
    throw Error{Errc::bad_argument,
                fmt::format("server {} knows no user '{}'", name_, before_.name)};
  words.insert(words.end(), std::begin(further_rights), std::end(further_rights));
  words.push_back("on");
  words.push_back(">" + during_.password);
  const std::vector<std::string_view> views(words.begin(), words.end());
  if (const auto reply = ask(views); reply.is_error()) refuse("ACL SETUSER", reply);
  if (!log_in(during_))
    throw Error{Errc::bad_argument,
                fmt::format("server {} does not take the user that it was given", name_)};
}

/// MIGRATE goes by what servers of a cluster speak, also where there is no cluster.
void GuardedServer::check_tls() {
  const auto found = ask({"CONFIG", "GET", "tls-cluster"});
  if (found.is_error()) return;  // we may not ask: MIGRATE will tell
  const auto& items = found.as_items();
  const bool is_on = items.size() == 2 && items[1].as_text() == "yes";
  if (is_on == static_cast<bool>(tls_)) return;
  throw Error{Errc::bad_argument,
              tls_ ? fmt::format("server {}: with `server_tls` keys go from server to server by "
                                 "TLS, too: give it `tls-cluster yes`",
                                 name_)
                   : fmt::format("server {}: it has `tls-cluster yes`, so it sends keys by TLS "
                                 "alone: give the pool `server_tls`, or it `tls-cluster no`",
                                 name_)};
}

void GuardedServer::admit() {
  is_admitted_ = true;
  if (!line_) connect();
  check_tls();
  make_user();
  if (order({"ACL", "GETUSER", after_}).is_null())
    throw Error{
        Errc::bad_argument,
        fmt::format("server {} knows no user '{}', whom the new file names", name_, after_)};
}

/// A connection that has not logged in yet is of the user default, too: of a proxy that is about to
/// log in as the user of the move and whose clients' requests wait for that. It gets time to.
void GuardedServer::shut_out(std::string_view user) {
  order({"ACL", "SETUSER", user, "off"});
  const auto until = system_clock().steady() + time_to_log_in;
  while (user == default_user && system_clock().steady() < until && end_all_but_new(user) > 0)
    std::this_thread::sleep_for(look_again);
  for (const std::string_view kind : {"normal", "pubsub"})
    order({"CLIENT", "KILL", "TYPE", kind, "USER", user, "SKIPME", "yes"});
}

/// How many there are that have sent nothing yet.
std::size_t GuardedServer::end_all_but_new(std::string_view user) {
  std::size_t left = 0;
  for (const auto& client : clients()) {
    if (client.value("user") != user) continue;
    if (client.value("cmd") == "NULL")
      ++left;
    else
      order({"CLIENT", "KILL", "ID", client.id(), "USER", user});
  }
  return left;
}

void GuardedServer::fence() {
  is_fenced_ = true;
  shut_out(before_.name);
  if (after_ != before_.name) shut_out(after_);
}

void GuardedServer::lift() {
  order({"ACL", "SETUSER", before_.name, "on"});
  allow_after();
}

void GuardedServer::allow_after() {
  is_fenced_ = false;
  order({"ACL", "SETUSER", after_, "on"});
}

void GuardedServer::forget(std::string_view user) {
  is_admitted_ = is_admitted_ && user != during_.name;
  if (const auto reply = ask({"ACL", "DELUSER", user}); reply.is_error())
    refuse("ACL DELUSER", reply);
  line_.reset();  // it may have been that user's
}

std::vector<GuardedServer::ClientLine> GuardedServer::clients() {
  const auto list = order({"CLIENT", "LIST", "TYPE", "normal"}).as_text();
  std::vector<ClientLine> lines;
  for (std::size_t at = 0; at < list.size();) {
    const auto end = std::min(list.find('\n', at), list.size());
    lines.push_back({list.substr(at, end - at)});
    at = end + 1;
  }
  return lines;
}

std::string_view GuardedServer::ClientLine::value(std::string_view name) const {
  const std::string_view line{text};
  const auto found = line.find(fmt::format(" {}=", name));
  if (found == line.npos) return {};
  const auto begin = found + name.size() + 2;
  return line.substr(begin, line.find(' ', begin) - begin);
}

std::string_view GuardedServer::ClientLine::id() const {
  const std::string_view line{text};
  return line.substr(3, line.find(' ') - 3);
}

void GuardedServer::end_waiting() {
  for (const auto& client : clients()) {
    if (client.value("user") != before_.name || !client.value("flags").contains('b')) continue;
    // Not one that waits for CLIENT UNPAUSE, which would do its command all the same.
    const std::string_view words[] = {client.value("cmd")};
    const auto* const spec = resp::find_command(words);
    if (spec && spec->has(resp::flag_blocking)) order({"CLIENT", "UNBLOCK", client.id(), "ERROR"});
  }
}

std::vector<int> GuardedServer::databases() {
  const auto info = order({"INFO", "keyspace"}).as_text();
  std::vector<int> databases;
  for (auto at = info.find("\ndb"); at != std::string::npos; at = info.find("\ndb", at + 1))
    databases.push_back(leading_number<int>(std::string_view{info}.substr(at + 3)));
  return databases;
}

std::int64_t GuardedServer::count_keys() {
  const auto info = order({"INFO", "keyspace"}).as_text();
  std::int64_t keys = 0;
  for (auto at = info.find(":keys="); at != std::string::npos; at = info.find(":keys=", at + 1))
    keys += leading_number<std::int64_t>(std::string_view{info}.substr(at + 6));
  return keys;
}

void GuardedServer::use(int database) {
  if (!line_) connect();
  if (database != database_) order({"SELECT", std::to_string(database)});
  database_ = database;
}

Value GuardedServer::ask_in(int database, std::span<const std::string_view> words) {
  use(database);
  return ask(words);
}

Value GuardedServer::order_in(int database, std::span<const std::string_view> words) {
  auto reply = ask_in(database, words);
  if (reply.is_error()) refuse(words.front(), reply);
  return reply;
}

std::vector<std::int64_t> GuardedServer::sizes(int database, std::span<const std::string> keys) {
  use(database);
  std::string commands;
  for (const auto& key : keys) resp::append_command(commands, {"MEMORY", "USAGE", key});
  std::vector<std::int64_t> sizes;
  try {
    for (const auto& reply : line_->ask_all(commands, keys.size()))
      sizes.push_back(reply.type() == Value::Type::integer ? reply.as_integer() : -1);
  } catch (const Error&) {
    line_.reset();
    throw;
  }
  return sizes;
}

GuardedServer::Scanned GuardedServer::scan(int database, const std::string& cursor) {
  use(database);
  const auto reply = order({"SCAN", cursor, "COUNT", keys_a_scan});
  Scanned scanned{reply.as_items().at(0).as_text(), {}};
  for (const auto& key : reply.as_items().at(1).as_items()) scanned.keys.push_back(key.as_text());
  return scanned;
}

std::string GuardedServer::migrate(int database, std::span<const std::string> keys,
                                   const net::Endpoint& to) {
  use(database);
  const auto port = std::to_string(to.port);
  const auto db = std::to_string(database);
  std::vector<std::string_view> words{"MIGRATE",    to.host,          port,      "",
                                      db,           migrate_timeout,  "REPLACE", "AUTH2",
                                      during_.name, during_.password, "KEYS"};
  words.insert(words.end(), keys.begin(), keys.end());
  const auto reply = ask(words);
  return reply.is_error() ? reply.as_text() : std::string{};
}

void GuardedServer::look_after() {
  const auto reply = ask({"PING"});
  if (reply.is_error()) line_.reset();  // its user is gone: the next command logs in anew
}

}  // namespace sluice::proxy::move
