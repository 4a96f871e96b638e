#include "number/period.hpp"

#include <cctz/civil_time.h>
#include <cctz/time_zone.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sluice/error.hpp"

namespace sluice {
namespace {

constexpr std::string_view letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/";

/// A name that means the same on every machine. Not a path, not what the machine's owner has set,
/// and not the copies of all zones that count leap seconds.
bool is_iana_name(std::string_view name) noexcept {
  constexpr std::size_t longest = 64;
  if (name.empty() || name.size() > longest || name.find_first_not_of(letters) != name.npos)
    return false;
  if (name.front() == '/' || name.back() == '/' || name.contains("//")) return false;
  if (name.starts_with("posix/") || name.starts_with("right/")) return false;
  return name != "localtime" && name != "posixrules" && name != "Factory";
}

}  // namespace

struct Calendar::Zone {
  cctz::time_zone zone;

  /// The first instant whose local date is `day` or later.
  WallTime start_of(cctz::civil_day day) const {
    const auto found = zone.lookup(cctz::civil_second{day});
    // Midnight may be skipped (the day begins at the transition) or come twice (it begins with the
    // first).
    return found.kind == cctz::time_zone::civil_lookup::SKIPPED ? found.trans : found.pre;
  }
};

const Period& PeriodTable::at(WallTime instant) const noexcept {
  const auto after =
      std::upper_bound(periods.begin(), periods.end(), instant,
                       [](WallTime when, const Period& period) { return when < period.start; });
  return *std::prev(after);
}

Calendar::Calendar(const std::string& zone) : zone_(std::make_unique<Zone>()) {
  if (!is_iana_name(zone))
    throw Error{Errc::bad_argument,
                fmt::format("time zone '{}' is no IANA name, and may be another zone on another "
                            "machine; use a name such as 'Asia/Shanghai'",
                            zone.substr(0, 200))};
  if (!cctz::load_time_zone(zone, &zone_->zone))
    throw Error{
        Errc::bad_argument,
        fmt::format("time zone '{}' is not in this machine's tz database; use an IANA name such as "
                    "'Asia/Shanghai', and see that the package tzdata is installed",
                    zone)};
}

Calendar::~Calendar() = default;
Calendar::Calendar(Calendar&&) noexcept = default;
Calendar& Calendar::operator=(Calendar&&) noexcept = default;

PeriodTable Calendar::around(WallTime instant) const {
  const cctz::civil_day today{cctz::convert(instant, zone_->zone)};
  PeriodTable table;
  table.end = zone_->start_of(today + 3);
  const bool no_yesterday = zone_->start_of(today - 1) == zone_->start_of(today);
  for (int day = no_yesterday ? -2 : -1; day <= 2; ++day) {
    const cctz::civil_day date = today + day;
    const auto start = zone_->start_of(date);
    if (start == zone_->start_of(date + 1)) continue;  // a date that the zone left out
    table.periods.push_back(
        {start, fmt::format("{:04}{:02}{:02}", date.year(), date.month(), date.day())});
  }
  return table;
}

}  // namespace sluice
