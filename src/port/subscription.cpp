// SUBSCRIBE and its kin, PUBSUB.
#include <algorithm>

#include "port/port.hpp"
#include "port/port_thread.hpp"
#include "port/verbs.hpp"
#include "resp/glob.hpp"

namespace sluice::port {

std::size_t Connection::listens_to(Listening kind) const noexcept {
  return listening_[static_cast<std::size_t>(kind)].size();
}

void Connection::tell_listening(std::string_view verb, const std::string_view* name, Listening kind,
                                WireReply& reply) {
  auto writer = reply.writer();
  writer.push(3);
  writer.bulk(verb);
  name ? writer.bulk(*name) : writer.null();
  const auto count = kind == Listening::shard
                         ? listens_to(kind)
                         : listens_to(Listening::channel) + listens_to(Listening::pattern);
  writer.integer(static_cast<std::int64_t>(count));
}

void Connection::listen(Listening kind, std::string_view verb, Words names, WireReply& reply) {
  static_cast<void>(thread_.section());
  auto& own = listening_[static_cast<std::size_t>(kind)];
  for (const auto& name : names) {
    if (own.emplace(name).second) port().audience().listen(*this, kind, name);
    tell_listening(verb, &name, kind, reply);
  }
}

void Connection::leave(Listening kind, std::string_view verb, Words names, WireReply& reply) {
  static_cast<void>(thread_.section());
  auto& own = listening_[static_cast<std::size_t>(kind)];
  const std::vector<std::string> all{own.begin(), own.end()};
  std::vector<std::string_view> left{names.begin(), names.end()};
  if (left.empty()) left.assign(all.begin(), all.end());
  if (left.empty()) return tell_listening(verb, nullptr, kind, reply);
  for (const auto& name : left) {
    if (const auto found = own.find(name); found != own.end()) {
      port().audience().leave(*this, kind, name);
      own.erase(found);
    }
    tell_listening(verb, &name, kind, reply);
  }
}

void Connection::subscribe(Words words, WireReply& reply) {
  listen(Listening::channel, "subscribe", words.subspan(1), reply);
}
void Connection::psubscribe(Words words, WireReply& reply) {
  listen(Listening::pattern, "psubscribe", words.subspan(1), reply);
}
void Connection::ssubscribe(Words words, WireReply& reply) {
  listen(Listening::shard, "ssubscribe", words.subspan(1), reply);
}
void Connection::unsubscribe(Words words, WireReply& reply) {
  leave(Listening::channel, "unsubscribe", words.subspan(1), reply);
}
void Connection::punsubscribe(Words words, WireReply& reply) {
  leave(Listening::pattern, "punsubscribe", words.subspan(1), reply);
}
void Connection::sunsubscribe(Words words, WireReply& reply) {
  leave(Listening::shard, "sunsubscribe", words.subspan(1), reply);
}

void Connection::tell_names(Listening kind, Words words, WireReply& reply) {
  static_cast<void>(thread_.section());
  auto names = port().audience().names(kind);
  if (words.size() > 2)
    std::erase_if(names, [&](auto name) { return !resp::glob_matches(words[2], name); });
  reply.array(names.size());
  for (const auto name : names) reply.bulk(name);
}

void Connection::tell_counts(Listening kind, Words words, WireReply& reply) {
  static_cast<void>(thread_.section());
  reply.array(2 * (words.size() - 2));
  for (const auto name : words.subspan(2)) {
    reply.bulk(name);
    reply.count(port().audience().count(kind, name));
  }
}

void Connection::pubsub_channels(Words words, WireReply& reply) {
  tell_names(Listening::channel, words, reply);
}
void Connection::pubsub_shardchannels(Words words, WireReply& reply) {
  tell_names(Listening::shard, words, reply);
}
void Connection::pubsub_numsub(Words words, WireReply& reply) {
  tell_counts(Listening::channel, words, reply);
}
void Connection::pubsub_shardnumsub(Words words, WireReply& reply) {
  tell_counts(Listening::shard, words, reply);
}
void Connection::pubsub_numpat(Words, WireReply& reply) {
  static_cast<void>(thread_.section());
  reply.count(port().audience().size(Listening::pattern));
}

}  // namespace sluice::port
