#include "redis/greeting.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"
#include "redis/moving_endpoint.hpp"
#include "resp/writer.hpp"
#include "topology/endpoint.hpp"

namespace sluice::redis {
namespace {

/// What HELLO tells under that name; empty: nothing.
std::string_view told(const Value& hello, std::string_view name) {
  const auto& items = hello.as_items();
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].is_text() && items[i].as_text() == name && items[i + 1].is_text())
      return items[i + 1].as_text();
  return {};
}

bool is_forbidden(const Value& reply) {
  return reply.is_error() && reply.as_text().starts_with("NOPERM ");
}

}  // namespace

std::string describe(const RedisOptions& options) {
  if (options.moving) return fmt::format("{}/{}", options.moving->server(), options.database);
  const auto* const scheme = options.endpoint.is_unix() ? "redis+unix"
                             : options.tls              ? "rediss"
                                                        : "redis";
  return fmt::format("{}://{}/{}", scheme, net::to_string(options.endpoint), options.database);
}

Greeting::Greeting(const RedisOptions& options, std::vector<std::string> channels,
                   bool counts_replicas)
    : server_(describe(options)),
      kind_(options.kind),
      is_for_master_(options.moving != nullptr),
      channels_(std::move(channels)) {
  std::vector<std::string_view> hello{"HELLO", "3"};
  if (!options.password.empty() || !options.user.empty()) {
    hello.push_back("AUTH");
    hello.push_back(options.user.empty() ? std::string_view{"default"}
                                         : std::string_view{options.user});
    hello.push_back(options.password);
  }
  if (!options.name.empty()) {
    hello.push_back("SETNAME");
    hello.push_back(options.name);
  }
  add(Step::hello, std::move(hello));
  if (options.user.empty() && !options.password.empty())
    add(Step::password, {"AUTH", options.password});
  const auto database = std::to_string(options.database);
  if (options.database != 0) add(Step::select, {"SELECT", database});
  if (options.kind == ServerKind::cluster_node) add(Step::identity, {"CLUSTER", "MYID"});
  if (options.is_replica && kind_ == ServerKind::cluster_node) add(Step::readonly, {"READONLY"});
  if (counts_replicas) add(Step::wait, {"WAIT", "0", "0"});
  for (const auto& channel : channels_) add(Step::subscribe, {"SUBSCRIBE", channel});
  add(Step::ping, {"PING"});
}

void Greeting::add(Step step, std::vector<std::string_view> words) {
  resp::append_command(bytes_, words);
  steps_.push_back(step);
}

bool Greeting::take(const Value& reply) {
  // Messages of a channel may come before the last confirmation; they are older than the gap that
  // will be told.
  const Step step = steps_[taken_];
  if (reply.type() == Value::Type::push) {
    const auto& items = reply.as_items();
    if (step != Step::subscribe || items.empty() || !items[0].is_text() ||
        items[0].as_text() != "subscribe")
      return false;
  }
  if (step == Step::password) {
    if (reply.is_error() && topology::is_without_password(reply.as_text()))
      warning_ = fmt::format(
          "{} asks for no password, but the URL has one: is it the server that was meant?",
          server_);
  } else if (step == Step::identity) {
    if (!reply.is_error()) node_id_ = reply.as_text();  // who may not ask goes on without
  } else if (step == Step::wait) {
    check_wait(reply);
  } else if (step == Step::subscribe && is_forbidden(reply)) {
    refused_.push_back({channels_[subscribed_], reply.as_text()});
  } else if (reply.is_error()) {
    refuse(step, reply.as_text());
  }
  check_kind(step, reply);
  if (step == Step::hello) {
    is_of_proxy_ = told(reply, "mode") == "proxy";
    check_mode(reply);
    check_role(reply);
  }
  if (step == Step::subscribe) ++subscribed_;
  return ++taken_ == steps_.size();
}

/// A server that is one reply behind would answer each call with the reply to another.
void Greeting::check_kind(Step step, const Value& reply) const {
  const bool is_right = [&] {
    switch (step) {
      case Step::hello: return reply.type() == Value::Type::map;
      case Step::password: return reply.is_error() || reply == Value::simple_string("OK");
      case Step::identity: return reply.is_text() || reply.is_error();
      case Step::wait: return reply.is_error() || reply.type() == Value::Type::integer;
      case Step::select:
      case Step::readonly: return reply == Value::simple_string("OK");
      case Step::subscribe: return reply.type() == Value::Type::push || is_forbidden(reply);
      case Step::ping: return reply == Value::simple_string("PONG");
    }
    return false;
  }();
  if (!is_right)
    throw Error{Errc::protocol, fmt::format("{} does not greet as a Redis server does: {}", server_,
                                            to_string(reply, 200))};
}

/// HELLO tells what kind of server it is, among other things.
void Greeting::check_mode(const Value& hello) const {
  const auto mode = told(hello, "mode");
  auto kind = ServerKind::alone;
  if (mode == "cluster") kind = ServerKind::cluster_node;
  if (mode == "sentinel") kind = ServerKind::sentinel;
  if (kind == kind_) {
    // Shard channels are of 7.0.
    const auto version = told(hello, "version");
    if (kind == ServerKind::cluster_node && leading_number<int>(version) < 7)
      throw Error{Errc::server, fmt::format("{} is version {}: a cluster is served from Redis 7 or "
                                            "Valkey 7.2 on, which have shard channels",
                                            server_, version)};
    return;
  }
  switch (kind) {
    case ServerKind::cluster_node:
      throw Error{Errc::server,
                  fmt::format("{} is a node of a cluster: most keys lie on other nodes; open "
                              "redis+cluster:// with it instead",
                              server_)};
    case ServerKind::sentinel:
      throw Error{Errc::server, fmt::format("{} is a Sentinel and holds no data; open "
                                            "redis+sentinel:// with it and the name of its master",
                                            server_)};
    case ServerKind::alone:
      throw Error{Errc::server,
                  fmt::format("{} is no {}", server_,
                              kind_ == ServerKind::sentinel ? "Sentinel" : "node of a cluster")};
  }
}

/// Who named it may have heard of its failover later than it did.
void Greeting::check_role(const Value& hello) const {
  if (is_for_master_ && told(hello, "role") != "master")
    throw Error{Errc::read_only, fmt::format("{}: the server is a replica", server_)};
}

/// Before anything is done whose copies nobody could count. A replica says another error: what it
/// is asked to do will be refused.
void Greeting::check_wait(const Value& reply) const {
  if (!reply.is_error()) return;
  const auto& text = reply.as_text();
  if (text.starts_with("NOPERM ") || text.starts_with("ERR unknown command"))
    throw Error{Errc::authentication,
                fmt::format("{} does not count replicas, which durability asks for: {}", server_,
                            text.substr(0, text.find(", with args")))};
}

void Greeting::refuse(Step step, const std::string& reply) const {
  const Error reason = error_of_reply(reply);
  if (reason.errc() == Errc::authentication)
    throw Error{Errc::authentication,
                fmt::format("{} refuses the user or password: {}", server_, reply)};
  if (step == Step::hello && !reply.starts_with("ERR max number of clients")) {
    // An old server quotes the command it does not know, password and all.
    const auto quoted = reply.substr(0, reply.find(", with args"));
    throw Error{Errc::server,
                fmt::format("{} does not speak RESP3; Redis 6, Valkey 7 or newer is needed: {}",
                            server_, quoted)};
  }
  throw Error{reason.errc(), fmt::format("{} is not ready: {}", server_, reply)};
}

}  // namespace sluice::redis
