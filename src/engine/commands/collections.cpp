#include "engine/commands/collections.hpp"

#include "base/integer.hpp"

namespace sluice::engine {

bool read_cursor(std::string_view word, std::uint64_t& cursor, Reply& reply) {
  const auto number = sluice::parse_integer<std::uint64_t>(word);
  cursor = number.value_or(0);
  return number || fail(reply, "ERR invalid cursor");
}

bool read_scan(Words words, std::size_t place, bool with_type, ScanOptions& options, Reply& reply) {
  if (!read_cursor(words[place], options.cursor, reply)) return false;
  for (auto i = place + 1; i < words.size(); i += 2) {
    const bool has_value = i + 1 < words.size();
    if (is_word(words[i], "count") && has_value) {
      std::int64_t count = 0;
      if (!read_integer(words[i + 1], count, reply)) return false;
      if (count < 1) return fail(reply, syntax_error);
      options.count = static_cast<std::size_t>(count);
    } else if (is_word(words[i], "match") && has_value) {
      options.pattern = words[i + 1] == "*" ? std::string_view{} : words[i + 1];
    } else if (with_type && is_word(words[i], "type") && has_value) {
      options.type = words[i + 1];
    } else {
      return fail(reply, syntax_error);
    }
  }
  return true;
}

void reply_scan(Reply& reply, std::uint64_t cursor, const std::vector<std::string>& found) {
  reply.array(2);
  reply.bulk(std::to_string(cursor));
  reply.array(found.size());
  for (const auto& text : found) reply.bulk(text);
}

bool read_pop_keys(Words words, std::size_t place, PopKeys& out, Reply& reply) {
  std::int64_t count = 0;
  if (!read_integer_between(words[place], 1, largest_integer, count, reply,
                            "ERR numkeys should be greater than 0"))
    return false;
  const auto left = words.size() - place - 1;
  if (static_cast<std::uint64_t>(count) >= left) return fail(reply, syntax_error);
  out.keys = words.subspan(place + 1, static_cast<std::size_t>(count));
  const auto rest = words.subspan(place + 1 + out.keys.size());
  out.end = rest[0];
  if (rest.size() == 1) return true;
  if (rest.size() == 2 || !is_word(rest[1], "count")) return fail(reply, syntax_error);
  if (!read_integer_between(rest[2], 1, largest_integer, out.count, reply,
                            "ERR count should be greater than 0"))
    return false;
  return rest.size() == 3 || fail(reply, syntax_error);
}

void wait_for(Context& context, Words keys, std::int64_t timeout_ms, Reply& reply) {
  if (context.in_script()) return reply.null_array();
  context.block({keys.begin(), keys.end()}, timeout_ms);
}

}  // namespace sluice::engine
