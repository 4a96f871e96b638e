#include "engine/core/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  if (!read_integer(word, value, reply, error)) return false;
  return (value >= least && value <= most) || fail(reply, error);
}

bool read_integers(Words words, std::int64_t& first, std::int64_t& second, Reply& reply) {
  return read_integer(words[0], first, reply) && read_integer(words[1], second, reply);
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
  if (ms >= static_cast<long double>(largest_integer))
    return fail(reply, "ERR timeout is out of range");
  if (ms < 0) return fail(reply, "ERR timeout is negative");
  timeout_ms = static_cast<std::int64_t>(std::ceil(ms));
  return true;
}

bool read_count(std::string_view word, std::int64_t& count, Reply& reply) {
  constexpr auto half = largest_integer / 2;
  if (!read_integer(word, count, reply)) return false;
  return (count >= -half && count <= half) || fail(reply, out_of_range);
}

bool read_pop_count(Words words, std::size_t& count, Reply& reply) {
  std::int64_t wanted = 1;
  if (words.size() > 2 &&
      !read_integer_between(words[2], 0, largest_integer, wanted, reply, not_positive))
    return false;
  count = static_cast<std::size_t>(wanted);
  return true;
}

bool read_database(std::string_view word, int& database, Reply& reply, std::string_view error) {
  std::int64_t number = 0;
  if (!read_integer(word, number, reply, error)) return false;
  if (number < 0 || number >= Engine::databases) return fail(reply, "ERR DB index is out of range");
  database = static_cast<int>(number);
  return true;
}

bool read_time_unit(std::string_view word, TimeUnit& unit) noexcept {
  static constexpr Choice<TimeUnit> units[] = {
      {"ex", {.seconds = true, .relative = true}},
      {"px", {.seconds = false, .relative = true}},
      {"exat", {.seconds = true, .relative = false}},
      {"pxat", {.seconds = false, .relative = false}},
  };
  return choose(word, units, unit);
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

bool set_expiry(Context& context, std::string_view key, Entry& entry, std::int64_t at_ms) {
  if (at_ms > context.now_ms() || context.engine().loading) {
    context.keys().set_expiry_ms(entry, at_ms);
    return true;
  }
  context.keys().erase(key);
  context.log_instead({"DEL", key});
  return false;
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
