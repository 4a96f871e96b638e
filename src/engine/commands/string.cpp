// Strings, but for their bits.
#include <cmath>

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

void get(Context&, Words, std::string* text, Reply& reply) { reply.bulk_or_null(text); }

void mget(Context& context, Words words, Reply& reply) {
  reply.array(words.size() - 1);
  for (const auto& key : words.subspan(1)) {
    Object* object = find(context, key);
    reply.bulk_or_null(object ? as<std::string>(*object) : nullptr);
  }
}

void getrange(Context& context, Words words, Reply& reply) {
  auto [start, end] = read_integers(words.subspan(2));
  auto* text = find_as<std::string>(context, words[1]);
  if (!text || (start < 0 && end < 0 && start > end)) return reply.bulk("");
  const auto count = static_cast<std::int64_t>(text->size());
  // As Redis: an end before the start means the first byte.
  if (end < 0) end = std::max<std::int64_t>(end + count, 0);
  const auto part = interval_of(start, end, text->size());
  reply.bulk(std::string_view{*text}.substr(part.first, part.size()));
}

/// Adds to the whole number at a key; nothing there is 0. The time of expiry stays.
void add(Context& context, std::string_view key, std::int64_t by, Reply& reply) {
  auto* text = find_as<std::string>(context, key);
  auto value = text ? read_integer(*text) : 0;
  if (__builtin_add_overflow(value, by, &value)) return reply.error(increment_overflows);
  auto& number = value_or_new(context, key, text);
  expect_change(context.undo(), number);
  number.assign(IntegerText{value}.view());
  context.changed();
  reply.integer(value);
}

void incr(Context& context, Words words, Reply& reply) { add(context, words[1], 1, reply); }
void decr(Context& context, Words words, Reply& reply) { add(context, words[1], -1, reply); }
void incrby(Context& context, Words words, Reply& reply) {
  add(context, words[1], read_integer(words[2]), reply);
}
void decrby(Context& context, Words words, Reply& reply) {
  const auto by = read_integer(words[2]);
  if (by == std::numeric_limits<std::int64_t>::min())
    return reply.error("ERR decrement would overflow");
  add(context, words[1], -by, reply);
}

void incrbyfloat(Context& context, Words words, std::string* text, Reply& reply) {
  const auto value = text ? parse_long_double(*text) : 0.0L;
  const auto by = parse_long_double(words[2]);
  if (!value || !by) return reply.error(not_a_float);
  const auto sum = *value + *by;
  if (std::isnan(sum) || std::isinf(sum)) return reply.error(increment_not_finite);
  const auto result = text_of(sum);
  auto& number = value_or_new(context, words[1], text);
  expect_change(context.undo(), number);
  number = result;
  context.changed();
  context.log_instead({"SET", words[1], result, "KEEPTTL"});  // another machine may round otherwise
  reply.bulk(result);
}

void append(Context& context, Words words, std::string* found, Reply& reply) {
  auto& text = value_or_new(context, words[1], found);
  if (text.size() + words[2].size() > longest_string) return reply.error(string_too_long);
  expect_change(context.undo(), text, text.size(), words[2].size());
  text.append(words[2]);
  context.changed();
  reply.count(text.size());
}

void setrange(Context& context, Words words, Reply& reply) {
  const auto offset = read_integer(words[2]);
  if (offset < 0) return reply.error("ERR offset is out of range");
  auto* text = find_as<std::string>(context, words[1]);
  const auto& piece = words[3];
  if (piece.empty()) return reply.count(text ? text->size() : 0);
  const auto begin = static_cast<std::size_t>(offset);
  if (begin > longest_string || begin + piece.size() > longest_string)
    return reply.error(string_too_long);
  if (!text) text = &make<std::string>(context, words[1]);
  expect_change(context.undo(), *text, begin, piece.size());
  if (text->size() < begin + piece.size()) text->resize(begin + piece.size());
  text->replace(begin, piece.size(), piece);
  context.changed();
  reply.count(text->size());
}

// --- setting and taking a whole value; times of expiry are logged absolute ---

enum class When { always, missing, present };

struct SetOptions {
  When when = When::always;
  bool get = false;
  bool keep_ttl = false;
  std::optional<std::int64_t> at_ms;
};

/// The options of SET.
SetOptions read_options(const Context& context, Words options) {
  SetOptions out;
  std::optional<TimeUnit> unit;
  std::string_view time;
  for (std::size_t i = 0; i < options.size(); ++i) {
    TimeUnit found{};
    if (is_word(options[i], "nx") && out.when != When::present)
      out.when = When::missing;
    else if (is_word(options[i], "xx") && out.when != When::missing)
      out.when = When::present;
    else if (is_word(options[i], "get"))
      out.get = true;
    else if (is_word(options[i], "keepttl") && !unit)
      out.keep_ttl = true;
    else if (read_time_unit(options[i], found) && !unit && !out.keep_ttl && i + 1 < options.size())
      unit = found, time = options[++i];
    else
      refuse(syntax_error);
  }
  if (unit) out.at_ms = read_expiry(context, time, *unit, true, "set");
  return out;
}

/// Puts the value; one that is over already is deleted at once, as Redis does.
void put(Context& context, std::string_view key, std::string_view value,
         const SetOptions& options) {
  auto& keys = context.keys();
  context.changed();
  if (options.keep_ttl) {
    if (Entry* entry = keys.find_entry(key, context.now_ms()))
      return keys.replace(*entry, std::string{value});
  }
  keys.put(key, std::string{value});
  if (!options.at_ms) return;
  if (set_expiry(context, key, *keys.find_entry(key, 0), *options.at_ms))
    context.log_instead({"SET", key, value, "PXAT", IntegerText{*options.at_ms}});
}

void set(Context& context, Words words, Reply& reply) {
  const auto options = words.size() > 3 ? read_options(context, words.subspan(3)) : SetOptions{};
  const auto& key = words[1];
  std::optional<std::string> old;
  if (options.get || options.when != When::always) {
    Object* object = find(context, key);
    if (options.get && object) {
      const auto* text = as<std::string>(*object);
      if (!text) return reply.error(wrong_type);
      old = *text;
    }
    if ((options.when == When::missing && object) || (options.when == When::present && !object))
      return old ? reply.bulk(*old) : reply.null();
  }
  if (words[2].size() > longest_string) return reply.error(string_too_long);
  put(context, key, words[2], options);
  if (!options.get) return reply.ok();
  old ? reply.bulk(*old) : reply.null();
}

void setnx(Context& context, Words words, Reply& reply) {
  if (find(context, words[1])) return reply.integer(0);
  put(context, words[1], words[2], {});
  reply.integer(1);
}

template <bool seconds>
void set_with_time(Context& context, Words words, Reply& reply) {
  constexpr TimeUnit unit{.seconds = seconds, .relative = true};
  SetOptions options;
  options.at_ms = read_expiry(context, words[2], unit, true, seconds ? "setex" : "psetex");
  put(context, words[1], words[3], options);
  reply.ok();
}

void getset(Context& context, Words words, std::string* text, Reply& reply) {
  reply.bulk_or_null(text);
  put(context, words[1], words[2], {});
  context.log_instead({"SET", words[1], words[2]});
}

void getdel(Context& context, Words words, std::string* text, Reply& reply) {
  if (!text) return reply.null();
  reply.bulk(*text);
  context.keys().erase(words[1]);
  context.changed();
  context.log_instead({"DEL", words[1]});
}

void getex(Context& context, Words words, Reply& reply) {
  TimeUnit unit{};
  const bool timed = words.size() == 4 && read_time_unit(words[2], unit);
  const bool persist = words.size() == 3 && is_word(words[2], "persist");
  if (!timed && !persist && words.size() != 2) return reply.error(syntax_error);
  auto* text = find_as<std::string>(context, words[1]);
  if (!text) return reply.null();
  const auto at_ms = timed ? read_expiry(context, words[3], unit, true, "getex") : 0;
  reply.bulk(*text);
  auto& entry = *context.keys().find_entry(words[1], context.now_ms());
  if (persist && entry.expiry_ms != Keyspace::never) {
    context.keys().set_expiry_ms(entry, Keyspace::never);
    context.changed();
    context.log_instead({"PERSIST", words[1]});
  } else if (timed) {
    context.changed();
    if (set_expiry(context, words[1], entry, at_ms))
      context.log_instead({"PEXPIREAT", words[1], IntegerText{at_ms}});
  }
}

void put_pairs(Context& context, Words words) {
  for (std::size_t i = 1; i < words.size(); i += 2) put(context, words[i], words[i + 1], {});
}

void mset(Context& context, Words words, Reply& reply) {
  if (words.size() % 2 == 0) refuse_arity("mset");
  put_pairs(context, words);
  reply.ok();
}

void msetnx(Context& context, Words words, Reply& reply) {
  if (words.size() % 2 == 0) refuse_arity("msetnx");
  for (std::size_t i = 1; i < words.size(); i += 2)
    if (find(context, words[i])) return reply.integer(0);
  put_pairs(context, words);
  reply.integer(1);
}

}  // namespace

CommandRows string_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"append", on<std::string, append>},
      {"decr", decr},
      {"decrby", decrby},
      {"get", on<std::string, get>},
      {"getdel", on<std::string, getdel>},
      {"getex", getex},
      {"getrange", getrange},
      {"getset", on<std::string, getset>},
      {"incr", incr},
      {"incrby", incrby},
      {"incrbyfloat", on<std::string, incrbyfloat>},
      {"mget", mget},
      {"mset", mset},
      {"msetnx", msetnx},
      {"psetex", set_with_time<false>},
      {"set", set},
      {"setex", set_with_time<true>},
      {"setnx", setnx},
      {"setrange", setrange},
      {"strlen", on<std::string, reply_size>},
      {"substr", getrange},
  };
  return rows;
}

}  // namespace sluice::engine
