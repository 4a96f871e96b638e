// Keys whatever they hold: DEL, EXISTS, TYPE, RENAME, COPY, MOVE, TOUCH, OBJECT.
#include <fmt/format.h>

#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

void del(Context& context, Words words, Reply& reply) {
  std::int64_t removed = 0;
  for (const auto& key : words.subspan(1))
    if (find(context, key)) removed += context.keys().erase(key) ? 1 : 0;
  if (removed > 0) context.changed();
  reply.integer(removed);
}

/// How many of the keys are there; one named twice counts twice.
void exists(Context& context, Words words, Reply& reply) {
  std::int64_t count = 0;
  for (const auto& key : words.subspan(1)) count += find(context, key) ? 1 : 0;
  reply.integer(count);
}

void type(Context& context, Words words, Reply& reply) {
  const Object* object = find(context, words[1]);
  reply.simple(object ? type_name(*object) : "none");
}

/// Somebody may be blocked on what can be popped or read.
void signal_if_waited_for(Context& context, std::string_view key, const Object& object) {
  if (!std::holds_alternative<std::string>(object)) context.signal(key);
}

/// Gives 1, 0 where `only_new` and the new name is taken, or -1: refused.
int rename_key(Context& context, Words words, bool only_new, Reply& reply) {
  auto& keys = context.keys();
  Entry* entry = keys.find_entry(words[1], context.now_ms());
  if (!entry) return reply.error(no_such_key), -1;
  if (words[1] == words[2]) return only_new ? 0 : 1;
  if (only_new && find(context, words[2])) return 0;
  const auto at_ms = entry->expiry_ms;
  Object moved = std::move(entry->object);
  keys.erase(words[1]);
  signal_if_waited_for(context, words[2], keys.put(words[2], std::move(moved)));
  keys.set_expiry_ms(words[2], at_ms);
  context.changed();
  return 1;
}

void rename(Context& context, Words words, Reply& reply) {
  if (rename_key(context, words, false, reply) == 1) reply.ok();
}
void renamenx(Context& context, Words words, Reply& reply) {
  if (const int done = rename_key(context, words, true, reply); done >= 0) reply.integer(done);
}

bool read_database(std::string_view word, int& database, Reply& reply) {
  std::int64_t number = 0;
  if (!read_integer(word, number, reply)) return false;
  if (number != static_cast<std::int32_t>(number))
    return fail(reply, "ERR value is out of range, value must between -2147483648 and 2147483647");
  if (number < 0 || number >= Engine::databases) return fail(reply, "ERR DB index is out of range");
  database = static_cast<int>(number);
  return true;
}

/// Looks a key up in another database than the session's, where what has expired is logged at once.
bool exists_in(Context& context, int database, std::string_view key) {
  const bool there =
      context.engine().keyspace(database).find_entry(key, context.now_ms()) != nullptr;
  if (database != context.session().database) context.engine().log_expired(context, database);
  return there;
}

void copy(Context& context, Words words, Reply& reply) {
  int database = context.session().database;
  bool replace = false;
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (same_word(words[i], "replace")) {
      replace = true;
    } else if (same_word(words[i], "db") && i + 1 < words.size()) {
      if (!read_database(words[++i], database, reply)) return;
    } else {
      return reply.error(syntax_error);
    }
  }
  if (database == context.session().database && words[1] == words[2])
    return reply.error("ERR source and destination objects are the same");
  const Entry* entry = context.keys().find_entry(words[1], context.now_ms());
  if (!entry || (exists_in(context, database, words[2]) && !replace)) return reply.integer(0);
  auto& target = context.engine().keyspace(database);
  const auto at_ms = entry->expiry_ms;
  signal_if_waited_for(context, words[2], target.put(words[2], copy_of(entry->object)));
  target.set_expiry_ms(words[2], at_ms);
  context.changed();
  reply.integer(1);
}

void move(Context& context, Words words, Reply& reply) {
  int database = 0;
  if (!read_database(words[2], database, reply)) return;
  if (database == context.session().database)
    return reply.error("ERR source and destination objects are the same");
  Entry* entry = context.keys().find_entry(words[1], context.now_ms());
  if (!entry || exists_in(context, database, words[1])) return reply.integer(0);
  auto& target = context.engine().keyspace(database);
  signal_if_waited_for(context, words[1], target.put(words[1], std::move(entry->object)));
  target.set_expiry_ms(words[1], entry->expiry_ms);
  context.keys().erase(words[1]);
  context.changed();
  reply.integer(1);
}

void object_encoding(Context& context, Words words, Reply& reply) {
  const Object* object = find(context, words[2]);
  object ? reply.bulk(encoding_of(*object)) : reply.null();
}
/// Objects are not shared, and nobody counts their use: what a fresh Redis object would answer.
template <std::int64_t answer>
void object_number(Context& context, Words words, Reply& reply) {
  find(context, words[2]) ? reply.integer(answer) : reply.null();
}
void object_freq(Context& context, Words words, Reply& reply) {
  if (!find(context, words[2])) return reply.null();
  reply.error(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching "
      "between policies at runtime LRU and LFU data will take some time to adjust.");
}

constexpr Handlers::Row rows[] = {
    {"del", del},
    {"unlink", del},
    {"exists", exists},
    {"touch", exists},
    {"type", type},
    {"rename", rename},
    {"renamenx", renamenx},
    {"copy", copy},
    {"move", move},
    {"object|encoding", object_encoding},
    {"object|refcount", object_number<1>},
    {"object|idletime", object_number<0>},
    {"object|freq", object_freq},
};

}  // namespace

void add_key_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
