#include "proxy/flow/session/subscription.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/session.hpp"
#include "proxy/redis/readers.hpp"
#include "resp/letters.hpp"
#include "resp/writer.hpp"
#include "sluice/log.hpp"
#include "topology/endpoint.hpp"

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t name_cost = 64;  // beside its bytes
constexpr auto between_tries = 1s;     // to hear a server again

/// A channel on which each server tells of its own keys, or a pattern of such.
bool is_notification(Subscriptions::Kind kind, std::string_view name) noexcept {
  if (kind == Subscriptions::Kind::pattern) return name.starts_with("__key");
  return kind == Subscriptions::Kind::channel &&
         (name.starts_with("__keyspace@") || name.starts_with("__keyevent@"));
}

/// "subscribe" and its like.
std::string_view verb_of(Subscriptions::Kind kind, bool begin) noexcept {
  static constexpr std::string_view verbs[][2]{
      {"unsubscribe", "subscribe"}, {"punsubscribe", "psubscribe"}, {"sunsubscribe", "ssubscribe"}};
  return verbs[static_cast<std::size_t>(kind)][begin ? 1 : 0];
}

/// The first word of a push: "message", "subscribe" ... Empty: it has none.
std::string_view word_of_push(std::string_view push) noexcept {
  const auto header = element_at(push);
  return header.type != '>' || header.children == 0 ? "" : string_at(push.substr(header.size));
}

/// The channel of a push that begins or ends a subscription.
std::string_view name_of_push(std::string_view push) noexcept {
  const auto header = element_at(push);
  const auto items = push.substr(header.size);
  return header.children < 2 ? "" : string_at(items.substr(reply_size(items)));
}

}  // namespace

/// The client's connection to one home of what it has subscribed to. One that carries notifications
/// of keys alone may be lost, and is made again.
class Subscriptions::Connection final : public PushReceiver {
 public:
  Connection(Subscriptions& owner, Server& server) : owner_(owner), server_(server) { begin(); }
  ~Connection() override { close(); }

  Server& server() const noexcept { return server_; }

  /// To be sent with the next send(). Its confirmation will be taken with `number`.
  void add(Kind kind, std::string_view name, bool begin, std::uint64_t number) {
    verb_ = verb_of(kind, begin);  // the same for all names of a request
    unsent_.emplace_back(name);
    expected_.push_back(number);
    count(begin);
  }
  void count(bool begin) noexcept { used_ = begin ? used_ + 1 : used_ - 1; }

  /// What is subscribed everywhere, as if it had been from the beginning: its confirmations are not
  /// the client's. May lose the connection again.
  void make_up() {
    if (!connection_) begin();
    if (!connection_) return close();
    used_ = 0;
    for (const auto kind : {Kind::channel, Kind::pattern})
      for (const auto& [name, home] : owner_.names(kind)) used_ += home ? 0 : 1;
    for (const auto kind : {Kind::channel, Kind::pattern}) {
      if (is_lost_) return;
      verb_ = verb_of(kind, true);
      for (const auto& [name, home] : owner_.names(kind)) {
        if (home) continue;
        unsent_.push_back(name);
        expected_.push_back(made_up);
      }
      send();
    }
  }
  bool is_lost() const noexcept { return is_lost_; }
  /// It was begun long enough ago to be begun again.
  bool may_begin(SteadyTime now) const noexcept { return now - begun_ >= between_tries; }

  /// May lose the connection.
  void send() {
    if (unsent_.empty()) return;
    if (!connection_) return owner_.end(owner_.pool_.protocol().reply_for(Failure::overloaded));
    const auto names = std::exchange(unsent_, {});
    const auto each = owner_.is_apart(verb_) ? 1 : names.size();
    std::string bytes;
    for (std::size_t at = 0; at < names.size(); at += each) {
      resp::append_command_header(bytes, each + 1);
      resp::append_bulk(bytes, verb_);
      for (const auto& name : std::span{names}.subspan(at, each)) resp::append_bulk(bytes, name);
    }
    connection_->send_only(bytes);
  }

  /// The number of what the server has confirmed; they come in the order asked. Empty: it was asked
  /// for nothing.
  std::optional<std::uint64_t> take_expected() {
    if (expected_.empty()) return std::nullopt;
    const auto number = expected_.front();
    expected_.pop_front();
    return number;
  }
  /// The confirmation of what make_up() has asked for.
  static constexpr std::uint64_t made_up = UINT64_MAX;

  /// Nothing is subscribed on it, or will be.
  bool is_unused() const noexcept { return used_ == 0; }
  void give_back() {
    if (!connection_) return;
    connection_->set_push_receiver(nullptr);
    connection_.give_back();
  }
  void close() noexcept {
    if (connection_) connection_->set_push_receiver(nullptr);
    connection_.reset();
    is_lost_ = true;
    unsent_.clear();
  }

  void pushed(std::string_view message) override { owner_.pushed(*this, message); }
  void lost(std::string_view reply) override { owner_.lost(*this, reply); }

 private:
  void begin() {
    begun_ = owner_.pool_.loop().now();
    is_lost_ = false;
    connection_ =
        owner_.client_.borrow(server_, {.resp = 3, .db = owner_.pool_.settings().redis_db});
    if (connection_) connection_->set_push_receiver(this);
  }

  Subscriptions& owner_;
  Server& server_;
  BorrowedUpstream connection_;
  SteadyTime begun_{};
  bool is_lost_ = false;
  std::size_t used_ = 0;  // subscriptions
  std::deque<std::uint64_t> expected_;
  std::vector<std::string> unsent_;
  std::string_view verb_;
};

Subscriptions::Subscriptions(Client& client, Pool& pool) : client_(client), pool_(pool) {
  pool_.servers().add_holder(*this);
}

Subscriptions::~Subscriptions() {
  pool_.servers().remove_holder(*this);
  for (const auto& timer : {timer_, make_up_timer_}) pool_.loop().cancel(timer);
}

bool Subscriptions::is_everywhere(Kind kind, std::string_view name) const noexcept {
  // The nodes of a cluster pass messages on to each other, and tell of their own keys alone.
  if (pool_.settings().is_of_cluster()) return is_notification(kind, name);
  return kind == Kind::pattern || is_notification(kind, name) ||
         pool_.settings().distribution == Distribution::random;
}

/// Of a cluster's shard channels each is in a slot of its own.
bool Subscriptions::is_apart(std::string_view verb) const noexcept {
  return pool_.settings().is_of_cluster() &&
         (verb == verb_of(Kind::sharded, true) || verb == verb_of(Kind::sharded, false));
}

bool Subscriptions::hears_notifications_only(const Connection& connection) const noexcept {
  for (const auto kind : {Kind::channel, Kind::pattern, Kind::sharded})
    for (const auto& [name, home] : names_[static_cast<std::size_t>(kind)])
      if ((!home || home == &connection.server()) && !is_notification(kind, name)) return false;
  return true;
}

bool Subscriptions::hears_notifications_everywhere() const noexcept {
  bool any = false;
  for (const auto kind : {Kind::channel, Kind::pattern})
    for (const auto& [name, home] : names_[static_cast<std::size_t>(kind)]) {
      if (!home && !is_notification(kind, name)) return false;
      any = any || !home;
    }
  return any;
}

/// All or nothing: if one name cannot be subscribed, none is.
bool Subscriptions::may_subscribe(Kind kind, Words wanted) {
  auto bytes = name_bytes_;
  for (const auto name : wanted) {
    bytes += name.size() + name_cost;
    if (names(kind).contains(name)) continue;
    const bool has_home =
        is_everywhere(kind, name)
            ? std::ranges::any_of(pool_.servers(),
                                  [](const auto& server) { return server->health().well(); })
            : pool_.servers().home_of(name) != nullptr;
    if (!has_home) {
      client_.answer(Failure::refused);
      return false;
    }
  }
  if (bytes <= pool_.settings().client_output_limit) return true;
  client_.answer("-ERR more subscriptions than client_output_limit allows for their names\r\n");
  return false;
}

void Subscriptions::subscribe(Kind kind, Words wanted) {
  if (!may_subscribe(kind, wanted)) return;
  for (const auto name : wanted) change(kind, name, true);
  send();
}

void Subscriptions::unsubscribe(Kind kind, Words unwanted) {
  if (!unwanted.empty()) {
    for (const auto name : unwanted) change(kind, name, false);
  } else if (names(kind).empty()) {
    awaited_.push_back(
        {.kind = kind, .begins = false, .changes = false, .named = false, .name = {}});
  } else {
    std::vector<std::string> all;
    for (const auto& [name, home] : names(kind)) all.push_back(name);
    for (const auto& name : all) change(kind, name, false);
  }
  send();
}

void Subscriptions::change(Kind kind, std::string_view name, bool begin) {
  const auto number = first_awaited_ + awaited_.size();
  auto& awaited = awaited_.emplace_back(Awaited{
      .kind = kind, .begins = begin, .changes = false, .named = true, .name = std::string{name}});
  const auto known = names(kind).find(name);
  if (begin == (known != names(kind).end())) return;
  awaited.changes = true;
  const auto ask = [&](Connection& connection) {
    if (connection.is_lost() && is_notification(kind, name)) return connection.count(begin);
    if (connection.is_lost()) return end(pool_.protocol().reply_for(Failure::refused));
    connection.add(kind, name, begin, number);
    ++awaited.missing;
  };
  Server* home = nullptr;
  if (begin && !is_everywhere(kind, name)) home = pool_.servers().home_of(name);
  if (!begin) home = known->second;
  if (home) {
    ask(connection_to(*home));
  } else if (begin) {
    for (const auto& server : pool_.servers())
      if (server->health().well()) ask(connection_to(*server));
  } else {
    for (const auto& connection : connections_) ask(*connection);
  }
  const auto cost = name.size() + name_cost;
  name_bytes_ = begin ? name_bytes_ + cost : name_bytes_ - cost;
  if (begin)
    names(kind).emplace(name, home);
  else
    names(kind).erase(known);
}

Subscriptions::Connection& Subscriptions::connection_to(Server& server) {
  const auto found = std::ranges::find(
      connections_, &server, [](const auto& connection) { return &connection->server(); });
  if (found != connections_.end()) return **found;
  return *connections_.emplace_back(std::make_unique<Connection>(*this, server));
}

/// Sends what change() has gathered. A connection that cannot even be begun ends the client.
void Subscriptions::send() {
  for (std::size_t i = 0; i < connections_.size() && !ended_; ++i) connections_[i]->send();
  if (ended_) return;
  announce();
  if (!awaited_.empty()) expect_confirmation();
}

void Subscriptions::expect_confirmation() {
  client_.hold();
  holds_ = true;
  const auto& timeout = pool_.settings().timeout;
  if (!timeout) return;
  timer_ =
      pool_.loop().after(*timeout, [this] { end(pool_.protocol().reply_for(Failure::timed_out)); });
}

/// Confirms in the order asked, whatever the order in which servers have confirmed.
void Subscriptions::announce() {
  std::string text;
  while (!awaited_.empty() && awaited_.front().missing == 0) {
    append_confirmation(text, awaited_.front());
    awaited_.pop_front();
    ++first_awaited_;
  }
  if (!text.empty()) client_.push(text);
  if (awaited_.empty()) all_announced();
}

void Subscriptions::append_confirmation(std::string& out, const Awaited& awaited) {
  if (awaited.changes) counted(awaited.kind) += awaited.begins ? 1 : static_cast<std::size_t>(-1);
  const bool sharded = awaited.kind == Kind::sharded;
  const auto total =
      sharded ? counted(Kind::sharded) : counted(Kind::channel) + counted(Kind::pattern);
  resp::ReplyWriter writer{out, client_.mode().resp};
  writer.push(3);
  writer.bulk(verb_of(awaited.kind, awaited.begins));
  if (awaited.named)
    writer.bulk(awaited.name);
  else
    writer.null();
  writer.integer(static_cast<std::int64_t>(total));
}

void Subscriptions::all_announced() {
  if (!deferred_.empty()) client_.push(std::exchange(deferred_, {}));
  pool_.loop().cancel(std::exchange(timer_, {}));
  for (auto& connection : connections_)
    if (connection->is_unused()) connection->give_back();
  std::erase_if(connections_, [](const auto& connection) { return connection->is_unused(); });
  if (std::exchange(holds_, false)) client_.release();
}

/// Of one that carries notifications of keys alone the client keeps what the other servers tell.
void Subscriptions::lost(Connection& connection, std::string_view reply) {
  if (ended_) return;
  if (!hears_notifications_only(connection)) return end(reply);
  auto& server = connection.server();
  if (server.lost_told().is_due(pool_.loop().now()))
    log(LogLevel::warning,
        fmt::format("pool '{}': server '{}' is lost: subscribers miss its notifications of keys "
                    "until it is back",
                    pool_.settings().name, server.settings().name));
  forgo(connection);
  make_up_later();
}

/// What it has not confirmed counts as confirmed.
void Subscriptions::forgo(Connection& connection) {
  connection.close();
  while (const auto number = connection.take_expected())
    if (*number != Connection::made_up) --awaited_[*number - first_awaited_].missing;
}

void Subscriptions::make_up_later() {
  if (make_up_timer_.second == 0)
    make_up_timer_ = pool_.loop().at(pool_.loop().now(), [this] { make_up(); });
}

/// Not in lost(), whose caller is in the middle of its work.
void Subscriptions::make_up() {
  make_up_timer_ = {};
  if (ended_) return;
  announce();
  const auto is_lost = [](const auto& connection) { return connection->is_lost(); };
  for (const auto& connection : connections_)
    if (is_lost(connection) && connection->may_begin(pool_.loop().now()) &&
        pool_.servers().contains(&connection->server()) && connection->server().health().well())
      connection->make_up();
  pool_.loop().cancel(make_up_timer_);  // of one that is lost again
  make_up_timer_ = {};
  if (std::ranges::any_of(connections_, is_lost))
    make_up_timer_ = pool_.loop().after(between_tries, [this] { make_up(); });
}

void Subscriptions::pushed(Connection& connection, std::string_view message) {
  if (ended_ || client_.is_closing()) return;
  if (message.front() != '>') {  // an error: the server refuses
    if (go_on(connection, message)) return;
    return end(pool_.settings().is_of_cluster() ? Detours::told(message) : std::string{message});
  }
  const auto word = word_of_push(message);
  if (word == "sunsubscribe" && names(Kind::sharded).contains(name_of_push(message))) {
    pool_.servers().doubt(connection.server());  // nobody has asked for it: the slot has left
    return end({});
  }
  if (word.ends_with("subscribe"))
    confirmed(connection);
  else if (word.ends_with("message"))
    pass(message);
}

/// A shard channel that another node has now is subscribed there. False: it cannot be.
bool Subscriptions::go_on(Connection& connection, std::string_view error) {
  if (!pool_.settings().is_of_cluster() || !topology::is_refusal(error.substr(1))) return false;
  const auto next = pool_.detours().course(connection.server(), error);
  const auto number = connection.take_expected();
  if (!next.to || next.asks || !number || *number == Connection::made_up) return false;
  auto& awaited = awaited_[*number - first_awaited_];
  if (awaited.kind != Kind::sharded || !awaited.begins || ++awaited.hops > Detours::most_hops)
    return false;
  connection.count(false);
  names(Kind::sharded)[awaited.name] = next.to;
  auto& its = connection_to(*next.to);
  its.add(Kind::sharded, awaited.name, true, *number);
  its.send();  // it may end the client
  return true;
}

/// May give the connection back, or end the client.
void Subscriptions::confirmed(Connection& connection) {
  const auto number = connection.take_expected();
  if (!number) return end({});  // the server has ended a subscription by itself
  if (*number == Connection::made_up) {
    auto& server = connection.server();
    if (server.heard_told().is_due(pool_.loop().now()))
      log(LogLevel::warning,
          fmt::format("pool '{}': server '{}' is subscribed to again for notifications of keys",
                      pool_.settings().name, server.settings().name));
    return;
  }
  --awaited_[*number - first_awaited_].missing;
  announce();
}

/// Passes a message on at once, unless its subscription may not be confirmed yet. (All that is
/// awaited is of one request: all of it subscribes, or all of it unsubscribes.)
void Subscriptions::pass(std::string_view message) {
  const bool resp3 = client_.mode().resp == 3;
  if (awaited_.empty() || !awaited_.front().begins) {
    if (!resp3) client_.push("*");
    client_.push(resp3 ? message : message.substr(1));
  } else {
    deferred_ += resp3 ? '>' : '*';
    deferred_ += message.substr(1);
  }
  close_if_slow();
}

/// It closes the client at once: `this` may be gone when it returns.
void Subscriptions::close_if_slow() {
  const auto waiting = client_.unsent() + deferred_.size();
  if (waiting <= pool_.settings().client_output_limit) return;
  pool_.counters().slow_subscribers.add();
  log(LogLevel::warning,
      fmt::format(
          "pool '{}': a subscriber does not take its messages; closed with {} bytes waiting",
          pool_.settings().name, waiting));
  client_.close();
}

/// Connections to servers that the pool has no more, and on which there were notifications alone.
void Subscriptions::leave_retired() {
  const auto is_left = [&](const auto& connection) {
    return !pool_.servers().contains(&connection->server()) &&
           hears_notifications_only(*connection);
  };
  for (const auto& connection : connections_)
    if (is_left(connection)) forgo(*connection);
  std::erase_if(connections_, is_left);
}

bool Subscriptions::check_homes() {
  leave_retired();
  const auto& servers = pool_.servers();
  const auto has_line = [&](const Server* server) {
    return std::ranges::any_of(
        connections_, [&](const auto& connection) { return &connection->server() == server; });
  };
  if (hears_notifications_everywhere())
    for (const auto& server : servers)
      if (server->health().well() && !has_line(server.get())) connection_to(*server).make_up();
  bool same = std::ranges::all_of(connections_, [&](const auto& connection) {
    return servers.contains(&connection->server());
  });
  for (const auto& names : names_)
    for (const auto& [name, home] : names) {
      if (!same) break;
      if (home && pool_.settings().is_of_cluster() && &names != &names_.back()) {
        continue;  // each node hears all channels but those of shards
      } else if (home) {
        const auto* const now = pool_.servers().home_of(name);
        same = now == nullptr || now == home;
      } else {
        same = std::ranges::all_of(servers, [&](const auto& server) {
          return !server->health().well() || has_line(server.get());
        });
      }
    }
  same ? make_up_later() : end({});
  return same;
}

void Subscriptions::check_rights(const Rights& rights) {
  for (const auto kind : {Kind::channel, Kind::pattern, Kind::sharded})
    for (const auto& [name, home] : names(kind))
      if (!rights.may_hear(name, kind == Kind::pattern)) return end({});
}

/// Destroys nothing: the caller may be one of the connections, in the middle of its work.
void Subscriptions::end(std::string_view reply) {
  if (std::exchange(ended_, true)) return;
  pool_.counters().lost_subscribers.add();
  if (!awaited_.empty()) client_.push(reply);
  for (const auto& connection : connections_) connection->close();
  client_.close_later();
}

// SUBSCRIBE and its like, and what else a subscribed client may ask.

namespace {

struct SubscribeVerbs {
  SessionVerb begin, end;
  Subscriptions::Kind kind;
};
constexpr SubscribeVerbs subscribe_verbs[] = {
    {SessionVerb::subscribe, SessionVerb::unsubscribe, Subscriptions::Kind::channel},
    {SessionVerb::psubscribe, SessionVerb::punsubscribe, Subscriptions::Kind::pattern},
    {SessionVerb::ssubscribe, SessionVerb::sunsubscribe, Subscriptions::Kind::sharded},
};

const SubscribeVerbs* find(SessionVerb verb) noexcept {
  const auto* const found = std::ranges::find_if(
      subscribe_verbs,
      [verb](const SubscribeVerbs& row) { return row.begin == verb || row.end == verb; });
  return found == std::end(subscribe_verbs) ? nullptr : found;
}

}  // namespace

Subscriptions& ClientSession::subscriptions() {
  if (!subscriptions_) subscriptions_ = std::make_unique<Subscriptions>(client_, pool());
  return *subscriptions_;
}

std::size_t ClientSession::subscribed(bool to_patterns) const noexcept {
  return subscriptions_ ? subscriptions_->count(to_patterns) : 0;
}

bool ClientSession::is_subscribed() const noexcept {
  return subscriptions_ && !subscriptions_->is_over();
}

void ClientSession::subscribe(Words words, std::string_view, const Plan& plan) {
  subscriptions().subscribe(find(plan.verb)->kind, words.subspan(1));
}

void ClientSession::unsubscribe(Words words, std::string_view, const Plan& plan) {
  subscriptions().unsubscribe(find(plan.verb)->kind, words.subspan(1));
}

void ClientSession::check_subscriptions(const Rights& rights) {
  if (subscriptions_) subscriptions_->check_rights(rights);
}

/// A subscribed client cannot tell a reply from a message in RESP2, so it may ask little.
bool ClientSession::is_confined(Words words, const Plan& plan) {
  if (subscriptions_ && subscriptions_->is_over()) subscriptions_.reset();
  if (!subscriptions_ || client_.mode().resp == 3 || plan.route == Route::refused) return false;
  if (plan.route == Route::session && (find(plan.verb) || plan.verb == SessionVerb::reset))
    return false;
  std::string reply;
  resp::ReplyWriter writer{reply};
  if (plan.route == Route::local && resp::is_word(words[0], "ping") && words.size() <= 2) {
    writer.array(2);
    writer.items("pong", words.size() == 2 ? words[1] : std::string_view{});
  } else {
    writer.error(fmt::format(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
        "allowed in this context",
        pool().protocol().command_name(plan.command)));
  }
  answer(reply);
  return true;
}

}  // namespace sluice::proxy::flow
