#include "proxy/move/guarded_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/integer.hpp"
#include "resp/command_table.hpp"
#include "resp/writer.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::move {
namespace {

using namespace std::chrono_literals;

constexpr auto longest_command = 60s;                 // a large key
constexpr std::string_view migrate_timeout = "1000";  // ms
constexpr std::string_view keys_a_scan = "500";

/// Begins the name of the user who keeps the rights of another while that one is fenced out.
constexpr std::string_view keeper = "sluice-move:";
/// What takes all rights to data from a user. A Sentinel and a replica need none of them.
constexpr std::string_view no_data[] = {"resetkeys", "-@keyspace", "-@read", "-@write"};

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

/// The fence leaves these as they are.
bool is_about_login(std::string_view rule) {
  return rule == "on" || rule == "off" || rule == "nopass" || rule.starts_with('#') ||
         rule.ends_with("sanitize-payload");
}

bool is_about_keys(std::string_view rule) {
  return rule.starts_with('~') || rule.starts_with('%') || rule.starts_with('(');
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

/// Empty: the server knows no such user. Without those about the login.
std::optional<GuardedServer::Rules> GuardedServer::rights_of(std::string_view user) {
  const auto list = order({"ACL", "LIST"});
  const auto head = fmt::format("user {} ", user);
  for (const auto& line : list.as_items()) {
    if (!line.as_text().starts_with(head)) continue;
    auto rules = rules_of(line.as_text());
    std::erase_if(rules, is_about_login);
    return rules;
  }
  return std::nullopt;
}

/// Empty: it is not fenced out. A user who has keys is not, whatever a move long ago has left.
std::optional<GuardedServer::Rules> GuardedServer::kept_rights_of(std::string_view user) {
  const auto its = rights_of(user);
  if (its && std::ranges::any_of(*its, is_about_keys)) return std::nullopt;
  return rights_of(fmt::format("{}{}", keeper, user));
}

void GuardedServer::set_user(std::string_view user, const Rules& rules) {
  std::vector<std::string_view> words{"ACL", "SETUSER", user};
  words.insert(words.end(), rules.begin(), rules.end());
  if (const auto reply = ask(words); reply.is_error()) refuse("ACL SETUSER", reply);
}

void GuardedServer::make_user() {
  auto rights = kept_rights_of(before_.name);
  if (!rights) rights = rights_of(before_.name);
  if (!rights)
    throw Error{Errc::bad_argument,
                fmt::format("server {} knows no user '{}'", name_, before_.name)};
  rights->insert(rights->begin(), "reset");
  rights->insert(rights->end(), std::begin(further_rights), std::end(further_rights));
  rights->insert(rights->end(), {"on", ">" + during_.password});
  set_user(during_.name, *rights);
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

/// A connection that has said nothing yet is left: it may be a proxy's, which is about to log in as
/// the user of the move, and until then it has no rights to keys, either.
void GuardedServer::shut_out(const std::string& user) {
  const auto rights = rights_of(user);
  if (!rights) return;
  if (!kept_rights_of(user)) {
    auto kept = *rights;
    kept.insert(kept.begin(), "reset");
    set_user(fmt::format("{}{}", keeper, user), kept);
  }
  Rules none{std::begin(no_data), std::end(no_data)};
  if (std::ranges::any_of(*rights, [](const auto& rule) { return rule.starts_with('('); }))
    none.emplace_back("clearselectors");
  set_user(user, none);
  for (const auto& client : clients())
    if (client.value("user") == user && client.wants_keys())
      order({"CLIENT", "KILL", "ID", client.id(), "USER", user, "SKIPME", "yes"});
}

void GuardedServer::give_back(const std::string& user) {
  if (auto rights = kept_rights_of(user)) {
    rights->insert(rights->begin(), {"resetkeys", "-@all"});
    set_user(user, *rights);
  }
  order({"ACL", "DELUSER", fmt::format("{}{}", keeper, user)});
}

void GuardedServer::fence() {
  is_fenced_ = true;
  shut_out(before_.name);
  if (after_ != before_.name) shut_out(after_);
}

void GuardedServer::lift() {
  give_back(before_.name);
  allow_after();
}

void GuardedServer::allow_after() {
  is_fenced_ = false;
  give_back(after_);
}

std::string GuardedServer::strangers() {
  std::map<std::string, std::string> found;
  for (const auto& client : clients()) {
    const auto user = client.value("user");
    if (user != before_.name && user != after_ && user != during_.name && client.wants_keys())
      found.emplace(user, client.value("addr"));
  }
  std::string text;
  for (const auto& [user, address] : found)
    text += fmt::format("{}'{}' at {}", text.empty() ? "" : ", ", user, address);
  return text;
}

void GuardedServer::forget(std::string_view user) {
  is_admitted_ = is_admitted_ && user != during_.name;
  order({"ACL", "DELUSER", user, fmt::format("{}{}", keeper, user)});
  line_.reset();  // it may have been that user's
}

std::vector<GuardedServer::ClientLine> GuardedServer::clients() {
  const auto list = order({"CLIENT", "LIST"}).as_text();
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

/// False: it has said nothing yet, or is a replica, the server's master or a Sentinel, which names
/// its connections.
bool GuardedServer::ClientLine::wants_keys() const {
  const auto flags = value("flags"), name = value("name");
  if (flags.contains('O')) return true;  // MONITOR makes it a replica, too
  return value("cmd") != "NULL" && flags.find_first_of("SM") == flags.npos &&
         !(name.starts_with("sentinel-") && (name.ends_with("-cmd") || name.ends_with("-pubsub")));
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
