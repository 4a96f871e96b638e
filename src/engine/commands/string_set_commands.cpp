// Strings: setting and taking a whole value. Times of expiry are logged absolute.
#include <optional>

#include "engine/commands/expiry_time.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

enum class When { always, missing, present };

struct SetOptions {
  When when = When::always;
  bool get = false;
  bool keep_ttl = false;
  std::optional<std::int64_t> at_ms;
};

/// The options of SET. False: refused.
bool read_options(const Context& context, Words options, SetOptions& out, Reply& reply) {
  std::optional<TimeUnit> unit;
  std::string_view time;
  for (std::size_t i = 0; i < options.size(); ++i) {
    TimeUnit found{};
    if (same_word(options[i], "nx") && out.when != When::present)
      out.when = When::missing;
    else if (same_word(options[i], "xx") && out.when != When::missing)
      out.when = When::present;
    else if (same_word(options[i], "get"))
      out.get = true;
    else if (same_word(options[i], "keepttl") && !unit)
      out.keep_ttl = true;
    else if (read_time_unit(options[i], found) && !unit && !out.keep_ttl && i + 1 < options.size())
      unit = found, time = options[++i];
    else
      return fail(reply, syntax_error);
  }
  if (!unit) return true;
  out.at_ms.emplace();
  return read_expiry(context, time, *unit, true, "set", *out.at_ms, reply);
}

/// Puts the value; one that is over already is deleted at once, as Redis does.
void put(Context& context, std::string_view key, std::string_view value,
         const SetOptions& options) {
  auto& keys = context.keys();
  context.changed();
  if (options.keep_ttl) {
    if (Object* object = find(context, key)) {
      *object = std::string{value};
      return;
    }
  }
  keys.put(key, std::string{value});
  if (!options.at_ms) return;
  if (*options.at_ms <= context.now_ms() && !context.engine().loading) {
    keys.erase(key);
    return context.log_instead({"DEL", key});
  }
  keys.set_expiry_ms(key, *options.at_ms);
  context.log_instead({"SET", key, value, "PXAT", IntegerText{*options.at_ms}});
}

void set(Context& context, Words words, Reply& reply) {
  SetOptions options;
  if (words.size() > 3 && !read_options(context, words.subspan(3), options, reply)) return;
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

void set_with_time(Context& context, Words words, TimeUnit unit, std::string_view command,
                   Reply& reply) {
  SetOptions options;
  options.at_ms.emplace();
  if (!read_expiry(context, words[2], unit, true, command, *options.at_ms, reply)) return;
  put(context, words[1], words[3], options);
  reply.ok();
}
void setex(Context& context, Words words, Reply& reply) {
  set_with_time(context, words, {.seconds = true, .relative = true}, "setex", reply);
}
void psetex(Context& context, Words words, Reply& reply) {
  set_with_time(context, words, {.seconds = false, .relative = true}, "psetex", reply);
}

void getset(Context& context, Words words, Reply& reply) {
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  text ? reply.bulk(*text) : reply.null();
  put(context, words[1], words[2], {});
  context.log_instead({"SET", words[1], words[2]});
}

void getdel(Context& context, Words words, Reply& reply) {
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  if (!text) return reply.null();
  reply.bulk(*text);
  context.keys().erase(words[1]);
  context.changed();
  context.log_instead({"DEL", words[1]});
}

void getex(Context& context, Words words, Reply& reply) {
  std::optional<std::int64_t> at_ms;
  bool persist = false;
  TimeUnit unit{};
  if (words.size() == 4 && read_time_unit(words[2], unit)) {
    at_ms.emplace();
  } else if (words.size() == 3 && same_word(words[2], "persist")) {
    persist = true;
  } else if (words.size() != 2) {
    return reply.error(syntax_error);
  }
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  if (!text) return reply.null();
  if (at_ms && !read_expiry(context, words[3], unit, true, "getex", *at_ms, reply)) return;
  reply.bulk(*text);
  auto& keys = context.keys();
  if (persist && keys.expiry_ms(words[1]) != Keyspace::never) {
    keys.set_expiry_ms(words[1], Keyspace::never);
    context.changed();
    context.log_instead({"PERSIST", words[1]});
  } else if (at_ms && *at_ms <= context.now_ms() && !context.engine().loading) {
    keys.erase(words[1]);
    context.changed();
    context.log_instead({"DEL", words[1]});
  } else if (at_ms) {
    keys.set_expiry_ms(words[1], *at_ms);
    context.changed();
    context.log_instead({"PEXPIREAT", words[1], IntegerText{*at_ms}});
  }
}

bool pairs_fit(Words words, std::string_view name, Reply& reply) {
  if (words.size() % 2 == 1) return true;
  refuse_arity(reply, name);
  return false;
}

void put_pairs(Context& context, Words words) {
  for (std::size_t i = 1; i < words.size(); i += 2) put(context, words[i], words[i + 1], {});
}

void mset(Context& context, Words words, Reply& reply) {
  if (!pairs_fit(words, "mset", reply)) return;
  put_pairs(context, words);
  reply.ok();
}

void msetnx(Context& context, Words words, Reply& reply) {
  if (!pairs_fit(words, "msetnx", reply)) return;
  for (std::size_t i = 1; i < words.size(); i += 2)
    if (find(context, words[i])) return reply.integer(0);
  put_pairs(context, words);
  reply.integer(1);
}

constexpr Handlers::Row rows[] = {
    {"set", set},       {"setnx", setnx}, {"setex", setex}, {"psetex", psetex}, {"getset", getset},
    {"getdel", getdel}, {"getex", getex}, {"mset", mset},   {"msetnx", msetnx},
};

}  // namespace

void add_string_set_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
