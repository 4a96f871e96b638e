// Keys, whatever they hold: DEL, EXISTS, TYPE, RENAME, COPY, MOVE, OBJECT, EXPIRE, TTL, SCAN ...
#include <fmt/format.h>

#include <algorithm>

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
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

/// A caller may be blocked on a list, sorted set or stream.
void signal_if_waited_for(Context& context, std::string_view key, const Object& object) {
  if (!std::holds_alternative<std::string>(object)) context.signal(key);
}

/// False: `only_new`, and the new name is taken.
bool rename_key(Context& context, Words words, bool only_new) {
  auto& keys = context.keys();
  Entry* entry = keys.find_entry(words[1], context.now_ms());
  if (!entry) refuse(no_such_key);
  if (words[1] == words[2]) return !only_new;
  if (only_new && find(context, words[2])) return false;
  signal_if_waited_for(context, words[2], keys.move(*entry, keys, words[2]));
  context.changed();
  return true;
}

void rename(Context& context, Words words, Reply& reply) {
  rename_key(context, words, false);
  reply.ok();
}
void renamenx(Context& context, Words words, Reply& reply) {
  reply.integer(rename_key(context, words, true) ? 1 : 0);
}

/// As COPY and MOVE read it: they have an error of their own for a number beyond 32 bits.
int read_other_database(std::string_view word) {
  const auto number = parse_integer(word);
  if (number && *number != static_cast<std::int32_t>(*number))
    refuse("ERR value is out of range, value must between -2147483648 and 2147483647");
  return read_database(word);
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
    if (is_word(words[i], "replace")) {
      replace = true;
    } else if (is_word(words[i], "db") && i + 1 < words.size()) {
      database = read_other_database(words[++i]);
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
  context.spend(size_about(entry->object) / 64);
  signal_if_waited_for(context, words[2], target.put(words[2], copy_of(entry->object)));
  target.set_expiry_ms(words[2], at_ms);
  context.changed();
  reply.integer(1);
}

void move(Context& context, Words words, Reply& reply) {
  const int database = read_other_database(words[2]);
  if (database == context.session().database)
    return reply.error("ERR source and destination objects are the same");
  Entry* entry = context.keys().find_entry(words[1], context.now_ms());
  if (!entry || exists_in(context, database, words[1])) return reply.integer(0);
  auto& target = context.engine().keyspace(database);
  signal_if_waited_for(context, words[1], context.keys().move(*entry, target, words[1]));
  context.changed();
  reply.integer(1);
}

void object_encoding(Context& context, Words words, Reply& reply) {
  const Object* object = find(context, words[2]);
  object ? reply.bulk(encoding_of(*object)) : reply.null();
}
/// Objects are not shared, and their use is not counted: what a fresh Redis object would answer.
template <std::int64_t answer>
void object_number(Context& context, Words words, Reply& reply) {
  find(context, words[2]) ? reply.integer(answer) : reply.null();
}
void object_freq(Context& context, Words words, Reply& reply) {
  if (!find(context, words[2])) return reply.null();
  reply.error(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

void memory_usage(Context& context, Words words, Reply& reply) {
  std::int64_t samples = 5;  // as Redis
  for (std::size_t i = 3; i < words.size(); i += 2) {
    if (!is_word(words[i], "samples") || i + 1 == words.size()) return reply.error(syntax_error);
    samples = read_integer(words[i + 1]);
    if (samples < 0) return reply.error(syntax_error);
  }
  const Entry* entry = context.keys().find_entry(words[2], context.now_ms());
  if (!entry) return reply.null();
  const auto most = static_cast<std::size_t>(samples);
  context.spend(samples == 0 ? size_about(entry->object) / 64 : most);
  reply.count(memory_of(*entry, most));
}

// --- times of expiry; they are logged absolute (PEXPIREAT) ---

/// NX XX GT LT.
struct Conditions {
  bool missing = false;
  bool present = false;
  bool later = false;
  bool earlier = false;

  bool hold(std::int64_t old_ms, std::int64_t new_ms) const noexcept {
    const bool none = old_ms == Keyspace::never;  // for ever: later than any time
    if (missing && !none) return false;
    if (present && none) return false;
    if (later && (none || new_ms <= old_ms)) return false;
    return !earlier || none || new_ms < old_ms;
  }
};

Conditions read_conditions(Words words) {
  static constexpr Choice<bool Conditions::*> flags[] = {{"nx", &Conditions::missing},
                                                         {"xx", &Conditions::present},
                                                         {"gt", &Conditions::later},
                                                         {"lt", &Conditions::earlier}};
  Conditions conditions;
  for (const auto& word : words) {
    bool Conditions::*flag = nullptr;
    if (!choose(word, flags, flag)) refuse(fmt::format("ERR Unsupported option {}", shown(word)));
    conditions.*flag = true;
  }
  if (conditions.missing && (conditions.present || conditions.later || conditions.earlier))
    refuse("ERR NX and XX, GT or LT options at the same time are not compatible");
  if (conditions.later && conditions.earlier)
    refuse("ERR GT and LT options at the same time are not compatible");
  return conditions;
}

template <bool seconds, bool relative>
void expire(Context& context, Words words, Reply& reply) {
  constexpr std::string_view name =
      relative ? (seconds ? "expire" : "pexpire") : (seconds ? "expireat" : "pexpireat");
  const auto conditions = read_conditions(words.subspan(3));
  const auto at_ms = read_expiry(context, words[2], {seconds, relative}, false, name);
  Entry* entry = context.keys().find_entry(words[1], context.now_ms());
  if (!entry || !conditions.hold(entry->expiry_ms, at_ms)) return reply.integer(0);
  context.changed();
  if (set_expiry(context, words[1], *entry, at_ms))
    context.log_instead({"PEXPIREAT", words[1], IntegerText{at_ms}});
  reply.integer(1);
}

/// -2: no such key, -1: for ever.
template <bool seconds, bool relative>
void expiry_of(Context& context, Words words, Reply& reply) {
  const Entry* entry = context.keys().find_entry(words[1], context.now_ms());
  if (!entry) return reply.integer(-2);
  if (entry->expiry_ms == Keyspace::never) return reply.integer(-1);
  auto ms = entry->expiry_ms;
  if (relative) ms = std::max<std::int64_t>(ms - context.now_ms(), 0);
  const auto rounded = static_cast<std::uint64_t>(ms) + 500;  // without a sign: it may be the last
  reply.integer(seconds ? static_cast<std::int64_t>(rounded / 1000) : ms);
}

void persist(Context& context, Words words, Reply& reply) {
  Entry* entry = context.keys().find_entry(words[1], context.now_ms());
  if (!entry || entry->expiry_ms == Keyspace::never) return reply.integer(0);
  context.keys().set_expiry_ms(*entry, Keyspace::never);
  context.changed();
  reply.integer(1);
}

// --- walking through the keys ---

/// Not while scanning: looking an expired key up deletes it.
void drop_expired(Context& context, std::vector<std::string>& keys) {
  std::erase_if(keys, [&](const std::string& key) { return !find(context, key); });
}

void scan(Context& context, Words words, Reply& reply) {
  const auto options = read_scan(words, 1, true);
  std::vector<std::string> found;
  const auto cursor = scan_some(context.keys(), options, [&](const Entry& entry) {
    context.spend(1);
    const bool type_fits = options.type.empty() || is_word(options.type, type_name(entry.object));
    if (type_fits && options.matches(entry.key())) found.emplace_back(entry.key());
  });
  drop_expired(context, found);
  reply_scan(reply, cursor, found);
}

void keys_matching(Context& context, Words words, Reply& reply) {
  std::vector<std::string> found;
  context.keys().for_each([&](const Entry& entry) {
    context.spend(1 + entry.key().size() / 16);
    if (words[1] == "*" || glob_matches(words[1], entry.key())) found.emplace_back(entry.key());
  });
  drop_expired(context, found);
  reply.array(found.size());
  for (const auto& key : found) reply.bulk(key);
}

void randomkey(Context& context, Words, Reply& reply) {
  auto& keys = context.keys();
  while (keys.size() > 0) {
    const std::string key{keys.random(context.engine().rng).key()};
    if (context.engine().loading || keys.find_entry(key, context.now_ms())) return reply.bulk(key);
  }
  reply.null();
}

void dbsize(Context& context, Words, Reply& reply) { reply.count(context.keys().size()); }

}  // namespace

CommandRows key_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"copy", copy},
      {"dbsize", dbsize},
      {"del", del},
      {"exists", exists},
      {"expire", expire<true, true>},
      {"expireat", expire<true, false>},
      {"expiretime", expiry_of<true, false>},
      {"keys", keys_matching},
      {"memory|usage", memory_usage},
      {"move", move},
      {"object|encoding", object_encoding},
      {"object|freq", object_freq},
      {"object|idletime", object_number<0>},
      {"object|refcount", object_number<1>},
      {"persist", persist},
      {"pexpire", expire<false, true>},
      {"pexpireat", expire<false, false>},
      {"pexpiretime", expiry_of<false, false>},
      {"pttl", expiry_of<false, true>},
      {"randomkey", randomkey},
      {"rename", rename},
      {"renamenx", renamenx},
      {"scan", scan},
      {"touch", exists},
      {"ttl", expiry_of<true, true>},
      {"type", type},
      {"unlink", del},
  };
  return rows;
}

}  // namespace sluice::engine
