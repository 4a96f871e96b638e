/// Instants as ISO 8601 writes them: "2026-11-11T20:00:00+08:00".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/clock.hpp"

namespace sluice {

/// For messages: what parse_instant() takes.
inline constexpr std::string_view instant_form =
    "a date, a time and its zone, like 2026-11-11T20:00:00+08:00 or 2026-11-11T12:00Z";

/// Seconds and their fraction (up to microseconds) may be missing; the zone, 'Z' or an offset of
/// hours and minutes, may not. Empty: the text is no such instant, or no day of the calendar has
/// it.
std::optional<WallTime> parse_instant(std::string_view text);

/// In UTC: "2026-11-11T12:00:00Z", with a fraction where there is one.
std::string to_text(WallTime instant);

}  // namespace sluice
