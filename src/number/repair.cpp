#include <algorithm>
#include <array>
#include <optional>

#include "base/integer.hpp"
#include "number/layout.hpp"
#include "number/period.hpp"
#include "number/series.lua.hpp"
#include "sluice/number.hpp"

namespace sluice {
namespace {

constexpr std::pair<std::string_view, RepairOutcome> outcomes[] = {
    {"repaired", RepairOutcome::repaired},
    {"sound", RepairOutcome::sound},
    {"unknown", RepairOutcome::count_unknown},
    {"fewer", RepairOutcome::more_were_given}};

constexpr std::int64_t year_10000 = 253'402'300'800'000'000;

/// "day;ZONE;DIGITS", and ";2" behind it or not.
struct Definition {
  std::string zone;
  int digits;
};

Definition definition_of(const std::string& name, std::string_view text) {
  const auto zone_ends = text.find(';', 4);
  if (text.starts_with("day;") && zone_ends != text.npos) {
    const auto digits = text.substr(zone_ends + 1);
    const auto number = parse_integer<int>(digits.substr(0, digits.find(';')));
    if (number && *number >= 1 && *number <= 15)
      return {std::string{text.substr(4, zone_ends - 4)}, *number};
  }
  throw Error{Errc::corrupt,
              fmt::format("the definition of series '{}' in the store is '{}', which makes no "
                          "sense: expected 'day;ZONE;DIGITS'",
                          name, text)};
}

WallTime instant_of(std::int64_t microseconds) {
  return WallTime{std::chrono::microseconds{microseconds}};
}

std::optional<std::int64_t> count_of(const Value& value) {
  const std::int64_t count = value.as_integer();
  return count < 0 ? std::nullopt : std::optional{count};
}

SeriesRepair repair_of(const Value::Items& parts) {
  const auto* const row = std::ranges::find(outcomes, parts.at(0).as_text(),
                                            &std::pair<std::string_view, RepairOutcome>::first);
  if (row == std::end(outcomes))
    throw Error{Errc::protocol, "the script answered '" + parts.at(0).as_text() + "'",
                Effect::unknown};
  return {.outcome = row->second,
          .now = instant_of(parts.at(1).as_integer()),
          .last = instant_of(parts.at(2).as_integer()),
          .last_period = parts.at(3).as_text(),
          .last_sequence = count_of(parts.at(4)),
          .period = parts.at(5).as_text(),
          .given = count_of(parts.at(6))};
}

}  // namespace

Task<SeriesRepair> Series::repair(Store& store, std::string name, RepairOptions how) {
  WallTime seen_from = store.clock().wall();
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto looking = store.run({"HMGET", number::state_key(name), "definition", "last", "prefix"});
    const Value state = co_await looking;
    const auto& fields = state.as_items();
    if (fields.at(0).is_null()) co_return SeriesRepair{.outcome = RepairOutcome::no_series};
    const std::string stored = fields[0].as_text();
    const auto [zone, digits] = definition_of(name, stored);
    const std::string last = fields[1].is_null() ? "0" : fields[1].as_text();
    const auto last_us = parse_integer<std::int64_t>(last);
    if (!last_us || *last_us < 0 || *last_us >= year_10000)
      throw Error{Errc::corrupt,
                  fmt::format("'last' of series '{}' in the store is '{}', no instant in "
                              "microseconds",
                              name, last)};
    if (how.given && (*how.given < 0 || *how.given > number::largest_of(digits)))
      throw Error{Errc::bad_argument,
                  fmt::format("series '{}': {} numbers cannot have been given, a day has 0 to {}",
                              name, *how.given, number::largest_of(digits))};

    const Calendar calendar{zone};
    const WallTime given_last = instant_of(*last_us);
    const PeriodTable around_last = calendar.around(given_last);
    const auto& day_of_last = around_last.at(given_last).label;
    number::DayWords words{name, calendar.around(seen_from)};
    words.keys.push_back(key_with_suffix(name, day_of_last));
    words.keys.push_back(number::journal_key(name));
    for (auto& word :
         std::array{how.given ? fmt::to_string(*how.given) : std::string{}, how.by, how.why, stored,
                    number::definition_of(zone, digits), fmt::to_string(number::largest_of(digits)),
                    std::string{how.only_look ? "1" : "0"}, last, day_of_last})
      words.args.push_back(word);
    const std::vector<std::string_view> keys{words.keys.begin(), words.keys.end()};
    const std::vector<std::string_view> args{words.args.begin(), words.args.end()};
    auto asked = store.run(scripts::number_repair, Words{keys}, Words{args});
    const Value reply = co_await asked;
    const auto& parts = reply.as_items();
    const auto& outcome = parts.at(0).as_text();
    if (outcome == "changed") continue;
    if (outcome == "unset") throw number::clock_unset(name, store, parts.at(1).as_integer());
    if (outcome == "range") {
      seen_from = instant_of(parts.at(1).as_integer());
      continue;
    }
    SeriesRepair repair = repair_of(parts);
    repair.prefix = fields[2].is_null() ? name : fields[2].as_text();
    repair.digits = digits;
    co_return repair;
  }
  throw Error{Errc::server,
              fmt::format("series '{}' in {} is being drawn from, or its clock jumps, so that it "
                          "cannot be repaired; try again",
                          name, store.describe())};
}

}  // namespace sluice
