#include "base/duration.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace sluice {
namespace {

using std::chrono::microseconds;

struct Unit {
  std::string_view name;
  std::int64_t us;
};
constexpr Unit units[] = {{"us", 1},         {"ms", 1000},         {"s", 1'000'000},
                          {"m", 60'000'000}, {"h", 3'600'000'000}, {"d", 86'400'000'000}};
constexpr double longest_us = 3650.0 * 86'400'000'000;

bool names(const Unit& unit, std::string_view text) {
  return std::ranges::equal(unit.name, text, {}, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  });
}

}  // namespace

std::optional<microseconds> parse_duration(std::string_view text, microseconds bare) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;  // no "nan"
  double count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count, std::chars_format::fixed);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view suffix{rest, end};
  const auto* const unit =
      std::ranges::find_if(units, [&](const Unit& one) { return names(one, suffix); });
  if (unit == std::end(units) && !suffix.empty()) return std::nullopt;
  const auto us = count * static_cast<double>(suffix.empty() ? bare.count() : unit->us);
  if (us > longest_us) return std::nullopt;
  return microseconds{std::llround(us)};
}

std::string duration_text(microseconds time) {
  if (time.count() == 0) return "0ms";
  const Unit* largest = units;
  for (const auto& unit : units)
    if (time.count() % unit.us == 0) largest = &unit;
  return std::to_string(time.count() / largest->us).append(largest->name);
}

}  // namespace sluice
