// The engine as a server: PING, TIME, databases, publishing. INFO is in info.cpp.
#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

void ping(Context&, Words words, Reply& reply) {
  if (words.size() > 2) return refuse_arity(reply, "ping");
  words.size() == 2 ? reply.bulk(words[1]) : reply.simple("PONG");
}

void echo(Context&, Words words, Reply& reply) { reply.bulk(words[1]); }

void time(Context& context, Words, Reply& reply) {
  reply.array(2);
  reply.bulk(IntegerText{context.now_us() / 1'000'000});
  reply.bulk(IntegerText{context.now_us() % 1'000'000});
}

void select(Context& context, Words words, Reply& reply) {
  if (read_database(words[1], context.session().database, reply)) reply.ok();
}

void swapdb(Context& context, Words words, Reply& reply) {
  int one = 0, other = 0;
  if (!read_database(words[1], one, reply, "ERR invalid first DB index") ||
      !read_database(words[2], other, reply, "ERR invalid second DB index"))
    return;
  context.engine().swap_databases(one, other);
  context.changed();
  reply.ok();
}

/// ASYNC and SYNC are the same here: the memory is given back before the reply.
bool read_flush(Words words, Reply& reply) {
  const bool good =
      words.size() == 1 ||
      (words.size() == 2 && (is_word(words[1], "async") || is_word(words[1], "sync")));
  return good || fail(reply, syntax_error);
}

void flushdb(Context& context, Words words, Reply& reply) {
  if (!read_flush(words, reply)) return;
  context.keys().clear();
  context.changed();
  reply.ok();
}

void flushall(Context& context, Words words, Reply& reply) {
  if (!read_flush(words, reply)) return;
  for (int database = 0; database < Engine::databases; ++database)
    context.engine().keyspace(database).clear();
  context.changed();
  reply.ok();
}

void publish(Context& context, Words words, Reply& reply) {
  reply.count(context.publish(words[1], words[2]));
}

void pubsub_channels(Context& context, Words words, Reply& reply) {
  auto channels =
      context.engine().channels ? context.engine().channels() : std::vector<std::string>{};
  if (words.size() > 2)
    std::erase_if(channels,
                  [&](const std::string& channel) { return !glob_matches(words[2], channel); });
  reply.array(channels.size());
  for (const auto& channel : channels) reply.bulk(channel);
}

void pubsub_numsub(Context& context, Words words, Reply& reply) {
  const auto& receivers = context.engine().receivers;
  reply.array(2 * (words.size() - 2));
  for (const auto& channel : words.subspan(2)) {
    reply.bulk(channel);
    reply.count(receivers ? receivers(channel) : 0);
  }
}

/// There are no replicas.
void wait(Context&, Words words, Reply& reply) {
  std::int64_t number = 0;
  if (!read_integer(words[1], number, reply) ||
      !read_integer(words[2], number, reply, "ERR timeout is not an integer or out of range"))
    return;
  number < 0 ? reply.error("ERR timeout is negative") : reply.integer(0);
}

void role(Context&, Words, Reply& reply) {
  reply.array(3);
  reply.bulk("master");
  reply.integer(0);
  reply.array(0);
}

constexpr CommandRow rows[] = {
    {"echo", echo},
    {"flushall", flushall},
    {"flushdb", flushdb},
    {"ping", ping},
    {"publish", publish},
    {"pubsub|channels", pubsub_channels},
    {"pubsub|numsub", pubsub_numsub},
    {"role", role},
    {"select", select},
    {"swapdb", swapdb},
    {"time", time},
    {"wait", wait},
};

}  // namespace

CommandRows server_commands() noexcept { return rows; }

}  // namespace sluice::engine
