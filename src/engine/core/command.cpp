#include "engine/core/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice::engine {

void refuse(std::string_view error) { throw Refusal{std::string{error}}; }

std::string wrong_arity(std::string_view name) {
  return fmt::format("ERR wrong number of arguments for '{}' command", name);
}
void refuse_arity(std::string_view name) { refuse(wrong_arity(name)); }

std::int64_t read_integer(std::string_view word, std::string_view error) {
  const auto value = parse_integer(word);
  if (!value) refuse(error);
  return *value;
}

std::int64_t read_integer_between(std::string_view word, std::int64_t least, std::int64_t most,
                                  std::string_view error) {
  const auto value = read_integer(word, error);
  if (value < least || value > most) refuse(error);
  return value;
}

std::pair<std::int64_t, std::int64_t> read_integers(Words words) {
  const auto first = read_integer(words[0]);
  return {first, read_integer(words[1])};
}

double read_double(std::string_view word, std::string_view error) {
  const auto value = parse_double(word);
  if (!value) refuse(error);
  return *value;
}

std::int64_t read_timeout(std::string_view word) {
  const auto seconds = parse_long_double(word);
  if (!seconds) refuse("ERR timeout is not a float or out of range");
  const auto ms = *seconds * 1000;
  if (ms >= static_cast<long double>(largest_integer)) refuse("ERR timeout is out of range");
  if (ms < 0) refuse("ERR timeout is negative");
  return static_cast<std::int64_t>(std::ceil(ms));
}

std::int64_t read_count(std::string_view word) {
  constexpr auto half = largest_integer / 2;
  const auto count = read_integer(word);
  if (count < -half || count > half) refuse(out_of_range);
  return count;
}

std::size_t read_pop_count(Words words) {
  if (words.size() <= 2) return 1;
  return static_cast<std::size_t>(read_integer_between(words[2], 0, largest_integer, not_positive));
}

int read_database(std::string_view word, std::string_view error) {
  const auto number = read_integer(word, error);
  if (number < 0 || number >= Engine::databases) refuse("ERR DB index is out of range");
  return static_cast<int>(number);
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

std::int64_t read_expiry(const Context& context, std::string_view word, TimeUnit unit,
                         bool positive, std::string_view command) {
  auto at_ms = read_integer(word);
  if (unit.relative && context.now_ms() < 0)
    refuse(
        "ERR the clock of this machine stands before 1970, so that no expiry can be kept: set it");
  const bool fits = (at_ms > 0 || !positive) &&
                    (!unit.seconds || !__builtin_mul_overflow(at_ms, 1000, &at_ms)) &&
                    (!unit.relative || !__builtin_add_overflow(at_ms, context.now_ms(), &at_ms));
  if (!fits) refuse(fmt::format("ERR invalid expire time in '{}' command", command));
  return std::max<std::int64_t>(at_ms, 0);  // before 1970 is over, and -1 means never
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

std::string upper(std::string_view text) {
  std::string raised{text};
  for (char& c : raised)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - ('a' - 'A'));
  return raised;
}

std::string shown(std::string_view word, std::size_t most) {
  std::string text{word.substr(0, std::min(most, word.find('\0')))};
  for (char& c : text)
    if (c == '\r' || c == '\n') c = ' ';
  return text;
}

}  // namespace sluice::engine
