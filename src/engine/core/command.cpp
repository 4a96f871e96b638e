#include "engine/core/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::engine {

bool read_integer(std::string_view word, std::int64_t& value, Reply& reply,
                  std::string_view error) {
  const auto parsed = parse_integer(word);
  if (!parsed) return fail(reply, error);
  value = *parsed;
  return true;
}

bool read_integer_between(std::string_view word, std::int64_t least, std::int64_t most,
                          std::int64_t& value, Reply& reply, std::string_view error) {
  const auto parsed = parse_integer(word);
  if (!parsed || *parsed < least || *parsed > most) return fail(reply, error);
  value = *parsed;
  return true;
}

bool read_double(std::string_view word, double& value, Reply& reply, std::string_view error) {
  const auto parsed = parse_double(word);
  if (!parsed) return fail(reply, error);
  value = *parsed;
  return true;
}

bool read_timeout(std::string_view word, std::int64_t& timeout_ms, Reply& reply) {
  const auto seconds = parse_long_double(word);
  if (!seconds) return fail(reply, "ERR timeout is not a float or out of range");
  const auto ms = *seconds * 1000;
  if (ms >= static_cast<long double>(std::numeric_limits<std::int64_t>::max()))
    return fail(reply, "ERR timeout is out of range");
  if (ms < 0) return fail(reply, "ERR timeout is negative");
  timeout_ms = static_cast<std::int64_t>(std::ceil(ms));
  return true;
}

bool read_count(std::string_view word, std::int64_t& count, Reply& reply) {
  constexpr auto half = std::numeric_limits<std::int64_t>::max() / 2;
  if (!read_integer(word, count, reply)) return false;
  return (count >= -half && count <= half) || fail(reply, out_of_range);
}

bool read_pop_count(Words words, std::size_t& count, Reply& reply) {
  std::int64_t wanted = 1;
  if (words.size() > 2 &&
      !read_integer_between(words[2], 0, std::numeric_limits<std::int64_t>::max(), wanted, reply,
                            not_positive))
    return false;
  count = static_cast<std::size_t>(wanted);
  return true;
}

Interval interval_of(std::int64_t start, std::int64_t end, std::size_t size) noexcept {
  const auto count = static_cast<std::int64_t>(size);
  if (start < 0) start = std::max<std::int64_t>(start + count, 0);
  if (end < 0) end += count;
  end = std::min(end, count - 1);
  if (start > end) return {};
  return {static_cast<std::size_t>(start), static_cast<std::size_t>(end) + 1};
}

std::string shown(std::string_view word, std::size_t most) {
  std::string text{word.substr(0, std::min(most, word.find('\0')))};
  for (char& c : text)
    if (c == '\r' || c == '\n') c = ' ';
  return text;
}

void refuse_arity(Reply& reply, std::string_view name) {
  reply.error(fmt::format("ERR wrong number of arguments for '{}' command", name));
}

}  // namespace sluice::engine
