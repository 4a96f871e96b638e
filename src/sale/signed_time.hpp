/// When a webhook was signed, and whether that is too long ago.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/clock.hpp"

namespace sluice::sale {

/// Seconds since 1970. Empty: it is none, or there is another text for it; and no sum of it and the
/// tolerance overflows.
std::optional<WallTime> signed_time(std::string_view text);
/// Why it is not to be trusted; empty: it is of these minutes.
std::string refusal_of_time(WallTime signed_at, WallTime now);

}  // namespace sluice::sale
