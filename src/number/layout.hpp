/// Where a series lies in the store, and what its scripts are told of the days.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "number/period.hpp"
#include "sluice/error.hpp"
#include "sluice/store.hpp"
#include "store/key_name.hpp"

namespace sluice::number {

inline std::string state_key(std::string_view name) { return key_with_suffix(name, "s"); }
inline std::string journal_key(std::string_view name) { return key_with_suffix(name, "repairs"); }

/// "day;ZONE;DIGITS" of a series whose days had counters that expired, and what it is now: programs
/// that look for the counters must not draw from it.
inline std::string definition_before(std::string_view zone, int digits) {
  return fmt::format("day;{};{}", zone, digits);
}
inline std::string definition_of(std::string_view zone, int digits) {
  return definition_before(zone, digits) + ";2";
}

constexpr std::int64_t largest_of(int digits) {
  std::int64_t largest = 1;
  for (int i = 0; i < digits; ++i) largest *= 10;
  return largest - 1;
}

inline std::string text_of(WallTime instant) {
  return fmt::to_string(instant.time_since_epoch().count());
}

/// For the outcome 'unset' of the scripts: `now_us` is long before there was a series.
inline Error clock_unset(std::string_view name, const Store& store, std::int64_t now_us) {
  return Error{
      Errc::server,
      fmt::format("the clock of {} says {} s since 1970, which is before 2024-01-01: series "
                  "'{}' has no day for it; set the server's clock",
                  store.describe(), now_us / 1'000'000, name)};
}

/// The keys and arguments with which each script of a series begins.
struct DayWords {
  DayWords(std::string_view name, const PeriodTable& table) : keys{state_key(name)} {
    args.push_back(text_of(table.end));
    for (const auto& day : table.periods) {
      keys.push_back(key_with_suffix(name, day.label));
      args.push_back(text_of(day.start));
      args.push_back(day.label);
    }
  }

  std::vector<std::string> keys;
  std::vector<std::string> args;
};

}  // namespace sluice::number
