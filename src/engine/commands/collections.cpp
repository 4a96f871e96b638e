#include "engine/commands/collections.hpp"

#include "base/integer.hpp"

namespace sluice::engine {

std::uint64_t read_cursor(std::string_view word) {
  const auto cursor = sluice::parse_integer<std::uint64_t>(word);
  if (!cursor) refuse("ERR invalid cursor");
  return *cursor;
}

ScanOptions read_scan(Words words, std::size_t place, bool with_type) {
  ScanOptions options{.cursor = read_cursor(words[place])};
  for (auto i = place + 1; i < words.size(); i += 2) {
    const bool has_value = i + 1 < words.size();
    if (is_word(words[i], "count") && has_value) {
      const auto count = read_integer(words[i + 1]);
      if (count < 1) refuse(syntax_error);
      options.count = static_cast<std::size_t>(count);
    } else if (is_word(words[i], "match") && has_value) {
      options.pattern = words[i + 1] == "*" ? std::string_view{} : words[i + 1];
    } else if (with_type && is_word(words[i], "type") && has_value) {
      options.type = words[i + 1];
    } else {
      refuse(syntax_error);
    }
  }
  return options;
}

void reply_scan(Reply& reply, std::uint64_t cursor, const std::vector<std::string>& found) {
  reply.array(2);
  reply.bulk(std::to_string(cursor));
  reply.array(found.size());
  for (const auto& text : found) reply.bulk(text);
}

PopKeys read_pop_keys(Words words, std::size_t place) {
  const auto count = read_integer_between(words[place], 1, largest_integer,
                                          "ERR numkeys should be greater than 0");
  const auto left = words.size() - place - 1;
  if (static_cast<std::uint64_t>(count) >= left) refuse(syntax_error);
  PopKeys out{.keys = words.subspan(place + 1, static_cast<std::size_t>(count)), .end = {}};
  const auto rest = words.subspan(place + 1 + out.keys.size());
  out.end = rest[0];
  if (rest.size() == 1) return out;
  if (rest.size() == 2 || !is_word(rest[1], "count")) refuse(syntax_error);
  out.count =
      read_integer_between(rest[2], 1, largest_integer, "ERR count should be greater than 0");
  if (rest.size() > 3) refuse(syntax_error);
  return out;
}

void wait_for(Context& context, Words keys, std::int64_t timeout_ms, Reply& reply) {
  if (!context.may_wait()) return reply.null_array();
  context.block({keys.begin(), keys.end()}, timeout_ms);
}

}  // namespace sluice::engine
