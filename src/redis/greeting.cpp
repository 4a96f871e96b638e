#include "redis/greeting.hpp"

#include <fmt/format.h>

#include "resp/writer.hpp"

namespace sluice::redis {

std::string describe(const RedisOptions& options) {
  return fmt::format("{}{}/{}", options.endpoint.is_unix() ? "redis+unix://" : "redis://",
                     net::to_string(options.endpoint), options.database);
}

Greeting::Greeting(const RedisOptions& options, const std::vector<std::string>& channels)
    : server_(describe(options)) {
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
  const auto database = std::to_string(options.database);
  if (options.database != 0) add(Step::select, {"SELECT", database});
  for (const auto& channel : channels) add(Step::subscribe, {"SUBSCRIBE", channel});
  add(Step::ping, {"PING"});
}

void Greeting::add(Step step, std::vector<std::string_view> words) {
  resp::append_command(bytes_, words);
  steps_.push_back(step);
}

bool Greeting::take(const Value& reply) {
  // Messages of a channel may come before the last confirmation; they are older than the gap that
  // will be told.
  if (reply.type() == Value::Type::push) {
    const auto& items = reply.as_items();
    if (items.empty() || !items[0].is_text() || items[0].as_text() != "subscribe") return false;
  }
  const Step step = steps_[taken_];
  if (reply.is_error()) refuse(step, reply.as_text());
  return ++taken_ == steps_.size();
}

void Greeting::refuse(Step step, const std::string& reply) const {
  const Error reason = error_of_reply(reply);
  if (reason.errc() == Errc::authentication)
    throw Error{Errc::authentication,
                fmt::format("{} refuses the user or password: {}", server_, reply)};
  if (step == Step::hello) {
    // An old server quotes the command it does not know, password and all.
    const auto quoted = reply.substr(0, reply.find(", with args"));
    throw Error{Errc::server,
                fmt::format("{} does not speak RESP3; Redis 6, Valkey 7 or newer is needed: {}",
                            server_, quoted)};
  }
  throw Error{reason.errc(), fmt::format("{} is not ready: {}", server_, reply)};
}

}  // namespace sluice::redis
