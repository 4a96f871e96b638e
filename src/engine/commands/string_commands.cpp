// Strings: reading, counting, changing in place. What sets a whole value is in
// string_set_commands.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

void get(Context& context, Words words, Reply& reply) {
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  text ? reply.bulk(*text) : reply.null();
}

void mget(Context& context, Words words, Reply& reply) {
  reply.array(words.size() - 1);
  for (const auto& key : words.subspan(1)) {
    Object* object = find(context, key);
    const auto* text = object ? as<std::string>(*object) : nullptr;
    text ? reply.bulk(*text) : reply.null();
  }
}

void strlen(Context& context, Words words, Reply& reply) {
  std::string* text = nullptr;
  if (find_as(context, words[1], text, reply))
    reply.integer(text ? static_cast<std::int64_t>(text->size()) : 0);
}

void getrange(Context& context, Words words, Reply& reply) {
  std::int64_t start = 0, end = 0;
  if (!read_integer(words[2], start, reply) || !read_integer(words[3], end, reply)) return;
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  if (!text || (start < 0 && end < 0 && start > end)) return reply.bulk("");
  const auto count = static_cast<std::int64_t>(text->size());
  if (end < 0)
    end =
        std::max<std::int64_t>(end + count, 0);  // as Redis: before the start means the first byte
  const auto part = interval_of(start, end, text->size());
  reply.bulk(std::string_view{*text}.substr(part.first, part.size()));
}

/// Adds to the whole number at a key; nothing there is 0. The time of expiry stays.
void add(Context& context, std::string_view key, std::int64_t by, Reply& reply) {
  std::string* text = nullptr;
  if (!find_as(context, key, text, reply)) return;
  std::int64_t value = 0;
  if (text && !read_integer(*text, value, reply)) return;
  if (__builtin_add_overflow(value, by, &value))
    return reply.error("ERR increment or decrement would overflow");
  const IntegerText sum{value};
  if (text)
    text->assign(sum.view());
  else
    context.keys().put(key, std::string{sum.view()});
  context.changed();
  reply.integer(value);
}

void incr(Context& context, Words words, Reply& reply) { add(context, words[1], 1, reply); }
void decr(Context& context, Words words, Reply& reply) { add(context, words[1], -1, reply); }
void incrby(Context& context, Words words, Reply& reply) {
  std::int64_t by = 0;
  if (read_integer(words[2], by, reply)) add(context, words[1], by, reply);
}
void decrby(Context& context, Words words, Reply& reply) {
  std::int64_t by = 0;
  if (!read_integer(words[2], by, reply)) return;
  if (by == std::numeric_limits<std::int64_t>::min())
    return reply.error("ERR decrement would overflow");
  add(context, words[1], -by, reply);
}

void incrbyfloat(Context& context, Words words, Reply& reply) {
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  const auto value = text ? parse_long_double(*text) : 0.0L;
  const auto by = parse_long_double(words[2]);
  if (!value || !by) return reply.error(not_a_float);
  const auto sum = *value + *by;
  if (std::isnan(sum) || std::isinf(sum))
    return reply.error("ERR increment would produce NaN or Infinity");
  const auto result = text_of(sum);
  if (text)
    *text = result;
  else
    context.keys().put(words[1], result);
  context.changed();
  context.log_instead({"SET", words[1], result, "KEEPTTL"});  // another machine may round otherwise
  reply.bulk(result);
}

void append(Context& context, Words words, Reply& reply) {
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  if (!text) text = as<std::string>(context.keys().put(words[1], std::string{}));
  if (text->size() + words[2].size() > longest_string) return reply.error(string_too_long);
  text->append(words[2]);
  context.changed();
  reply.integer(static_cast<std::int64_t>(text->size()));
}

void setrange(Context& context, Words words, Reply& reply) {
  std::int64_t offset = 0;
  if (!read_integer(words[2], offset, reply)) return;
  if (offset < 0) return reply.error("ERR offset is out of range");
  std::string* text = nullptr;
  if (!find_as(context, words[1], text, reply)) return;
  const auto& piece = words[3];
  if (piece.empty()) return reply.integer(text ? static_cast<std::int64_t>(text->size()) : 0);
  const auto begin = static_cast<std::size_t>(offset);
  if (begin > longest_string || begin + piece.size() > longest_string)
    return reply.error(string_too_long);
  if (!text) text = as<std::string>(context.keys().put(words[1], std::string{}));
  if (text->size() < begin + piece.size()) text->resize(begin + piece.size());
  text->replace(begin, piece.size(), piece);
  context.changed();
  reply.integer(static_cast<std::int64_t>(text->size()));
}

constexpr Handlers::Row rows[] = {
    {"get", get},         {"mget", mget},
    {"strlen", strlen},   {"getrange", getrange},
    {"substr", getrange}, {"incr", incr},
    {"decr", decr},       {"incrby", incrby},
    {"decrby", decrby},   {"incrbyfloat", incrbyfloat},
    {"append", append},   {"setrange", setrange},
};

}  // namespace

void add_string_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
