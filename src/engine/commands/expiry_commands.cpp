// Times of expiry. They are logged absolute (PEXPIREAT), and one that is over already as DEL.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/commands/expiry_time.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {

bool read_time_unit(std::string_view word, TimeUnit& unit) noexcept {
  struct Row {
    std::string_view word;
    TimeUnit unit;
  };
  static constexpr Row rows[] = {
      {"ex", {.seconds = true, .relative = true}},
      {"px", {.seconds = false, .relative = true}},
      {"exat", {.seconds = true, .relative = false}},
      {"pxat", {.seconds = false, .relative = false}},
  };
  for (const auto& row : rows)
    if (same_word(word, row.word)) return unit = row.unit, true;
  return false;
}

bool read_expiry(const Context& context, std::string_view word, TimeUnit unit, bool positive,
                 std::string_view command, std::int64_t& at_ms, Reply& reply) {
  if (!read_integer(word, at_ms, reply)) return false;
  const bool fits = (at_ms > 0 || !positive) &&
                    (!unit.seconds || !__builtin_mul_overflow(at_ms, 1000, &at_ms)) &&
                    (!unit.relative || !__builtin_add_overflow(at_ms, context.now_ms(), &at_ms));
  if (!fits) return fail(reply, fmt::format("ERR invalid expire time in '{}' command", command));
  at_ms = std::max<std::int64_t>(at_ms, 0);  // before 1970 is over, and -1 means never
  return true;
}

namespace {

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

bool read_conditions(Words words, Conditions& conditions, Reply& reply) {
  for (const auto& word : words) {
    if (same_word(word, "nx"))
      conditions.missing = true;
    else if (same_word(word, "xx"))
      conditions.present = true;
    else if (same_word(word, "gt"))
      conditions.later = true;
    else if (same_word(word, "lt"))
      conditions.earlier = true;
    else
      return fail(reply, fmt::format("ERR Unsupported option {}", shown(word)));
  }
  if (conditions.missing && (conditions.present || conditions.later || conditions.earlier))
    return fail(reply, "ERR NX and XX, GT or LT options at the same time are not compatible");
  if (conditions.later && conditions.earlier)
    return fail(reply, "ERR GT and LT options at the same time are not compatible");
  return true;
}

void set_expiry(Context& context, Words words, TimeUnit unit, std::string_view command,
                Reply& reply) {
  Conditions conditions;
  if (words.size() > 3 && !read_conditions(words.subspan(3), conditions, reply)) return;
  std::int64_t at_ms = 0;
  if (!read_expiry(context, words[2], unit, false, command, at_ms, reply)) return;
  auto& keys = context.keys();
  Entry* entry = keys.find_entry(words[1], context.now_ms());
  if (!entry || !conditions.hold(entry->expiry_ms, at_ms)) return reply.integer(0);
  context.changed();
  if (at_ms <= context.now_ms() && !context.engine().loading) {
    keys.erase(words[1]);
    context.log_instead({"DEL", words[1]});
  } else {
    keys.set_expiry_ms(*entry, at_ms);
    context.log_instead({"PEXPIREAT", words[1], IntegerText{at_ms}});
  }
  reply.integer(1);
}

void expire(Context& context, Words words, Reply& reply) {
  set_expiry(context, words, {.seconds = true, .relative = true}, "expire", reply);
}
void pexpire(Context& context, Words words, Reply& reply) {
  set_expiry(context, words, {.seconds = false, .relative = true}, "pexpire", reply);
}
void expireat(Context& context, Words words, Reply& reply) {
  set_expiry(context, words, {.seconds = true, .relative = false}, "expireat", reply);
}
void pexpireat(Context& context, Words words, Reply& reply) {
  set_expiry(context, words, {.seconds = false, .relative = false}, "pexpireat", reply);
}

/// -2: no such key, -1: for ever, else `present(expiry)`.
template <class Present>
void tell_expiry(Context& context, std::string_view key, Reply& reply, Present present) {
  const Entry* entry = context.keys().find_entry(key, context.now_ms());
  if (!entry) return reply.integer(-2);
  reply.integer(entry->expiry_ms == Keyspace::never ? -1 : present(entry->expiry_ms));
}
std::int64_t left(const Context& context, std::int64_t at_ms) {
  return std::max<std::int64_t>(at_ms - context.now_ms(), 0);
}

void ttl(Context& context, Words words, Reply& reply) {
  tell_expiry(context, words[1], reply,
              [&](std::int64_t at_ms) { return (left(context, at_ms) + 500) / 1000; });
}
void pttl(Context& context, Words words, Reply& reply) {
  tell_expiry(context, words[1], reply, [&](std::int64_t at_ms) { return left(context, at_ms); });
}
void expiretime(Context& context, Words words, Reply& reply) {
  tell_expiry(context, words[1], reply, [](std::int64_t at_ms) { return (at_ms + 500) / 1000; });
}
void pexpiretime(Context& context, Words words, Reply& reply) {
  tell_expiry(context, words[1], reply, [](std::int64_t at_ms) { return at_ms; });
}

void persist(Context& context, Words words, Reply& reply) {
  Entry* entry = context.keys().find_entry(words[1], context.now_ms());
  if (!entry || entry->expiry_ms == Keyspace::never) return reply.integer(0);
  context.keys().set_expiry_ms(*entry, Keyspace::never);
  context.changed();
  reply.integer(1);
}

constexpr Handlers::Row rows[] = {
    {"expire", expire},
    {"pexpire", pexpire},
    {"expireat", expireat},
    {"pexpireat", pexpireat},
    {"ttl", ttl},
    {"pttl", pttl},
    {"expiretime", expiretime},
    {"pexpiretime", pexpiretime},
    {"persist", persist},
};

}  // namespace

void add_expiry_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
