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

namespace sluice::proxy::flow {
namespace {

constexpr std::size_t name_cost = 64;  // beside its bytes

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

}  // namespace

/// The client's connection to one home of what it has subscribed to.
class Subscriptions::Connection final : public PushReceiver {
 public:
  Connection(Subscriptions& owner, Server& server)
      : owner_(owner),
        server_(server),
        connection_(
            owner.client_.borrow(server, {.resp = 3, .db = owner.pool_.settings().redis_db})) {
    if (connection_) connection_->set_push_receiver(this);
  }
  ~Connection() override { close(); }

  Server& server() const noexcept { return server_; }

  /// To be sent with the next send(). Its confirmation will be taken with `number`.
  void add(Kind kind, std::string_view name, bool begin, std::uint64_t number) {
    verb_ = verb_of(kind, begin);  // the same for all names of a request
    unsent_.emplace_back(name);
    expected_.push_back(number);
    used_ = begin ? used_ + 1 : used_ - 1;
  }

  /// May lose the connection.
  void send() {
    if (unsent_.empty()) return;
    if (!connection_) return owner_.end(owner_.pool_.protocol().reply_for(Failure::overloaded));
    const auto names = std::exchange(unsent_, {});
    std::string bytes;
    resp::append_command_header(bytes, names.size() + 1);
    resp::append_bulk(bytes, verb_);
    for (const auto& name : names) resp::append_bulk(bytes, name);
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

  /// Nothing is subscribed on it, or will be.
  bool is_unused() const noexcept { return used_ == 0; }
  void give_back() {
    connection_->set_push_receiver(nullptr);
    connection_.give_back();
  }
  void close() noexcept {
    if (connection_) connection_->set_push_receiver(nullptr);
    connection_.reset();
  }

  void pushed(std::string_view message) override { owner_.pushed(*this, message); }
  void lost(std::string_view reply) override { owner_.end(reply); }

 private:
  Subscriptions& owner_;
  Server& server_;
  BorrowedUpstream connection_;
  std::size_t used_ = 0;  // subscriptions
  std::deque<std::uint64_t> expected_;
  std::vector<std::string> unsent_;
  std::string_view verb_;
};

Subscriptions::Subscriptions(Client& client, Pool& pool) : client_(client), pool_(pool) {
  pool_.servers().add_subscriber(*this);
}

Subscriptions::~Subscriptions() {
  pool_.servers().remove_subscriber(*this);
  pool_.loop().cancel(timer_);
}

bool Subscriptions::is_everywhere(Kind kind) const noexcept {
  return kind == Kind::pattern || pool_.settings().distribution == Distribution::random;
}

/// All or nothing: if one name cannot be subscribed, none is.
bool Subscriptions::may_subscribe(Kind kind, Words wanted) {
  auto bytes = name_bytes_;
  for (const auto name : wanted) {
    bytes += name.size() + name_cost;
    if (names(kind).contains(name)) continue;
    const bool has_home =
        is_everywhere(kind)
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
    connection.add(kind, name, begin, number);
    ++awaited.missing;
  };
  Server* home = nullptr;
  if (begin && !is_everywhere(kind)) home = pool_.servers().home_of(name);
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

void Subscriptions::pushed(Connection& connection, std::string_view message) {
  if (ended_ || client_.is_closing()) return;
  if (message.front() != '>') return end(message);  // an error: the server refuses
  const auto word = word_of_push(message);
  if (word.ends_with("subscribe"))
    confirmed(connection);
  else if (word.ends_with("message"))
    pass(message);
}

/// May give the connection back, or end the client.
void Subscriptions::confirmed(Connection& connection) {
  const auto number = connection.take_expected();
  if (!number) return end({});  // the server has ended a subscription by itself
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

bool Subscriptions::check_homes() {
  const auto& servers = pool_.servers();
  const auto has_line = [&](const Server* server) {
    return std::ranges::any_of(
        connections_, [&](const auto& connection) { return &connection->server() == server; });
  };
  bool same = std::ranges::all_of(connections_, [&](const auto& connection) {
    return servers.contains(&connection->server());
  });
  for (const auto& names : names_)
    for (const auto& [name, home] : names) {
      if (!same) break;
      if (home) {
        const auto* const now = pool_.servers().home_of(name);
        same = now == nullptr || now == home;
      } else {
        same = std::ranges::all_of(servers, [&](const auto& server) {
          return !server->health().well() || has_line(server.get());
        });
      }
    }
  if (!same) end({});
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
