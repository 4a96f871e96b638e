/// Times as people write them: "250ms", "1.5s", "2h". The one parser of the command line, of URLs
/// and of the proxy's file.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// For messages: what parse_duration() takes.
inline constexpr std::string_view duration_form =
    "a number with us, ms, s, m, h or d, like 250ms, 1.5s or 2h";

/// `bare` is what a number without a unit counts: one second on the command line, as in sleep(1)
/// and flock(1); one millisecond in URLs and in the proxy's file, as in nutcracker's. Units may be
/// written in capitals. Empty: the text is no duration, or longer than ten years.
std::optional<std::chrono::microseconds> parse_duration(std::string_view text,
                                                        std::chrono::microseconds bare);

/// In the largest unit that divides it: "2h", "1500ms"; "0ms".
std::string duration_text(std::chrono::microseconds time);

}  // namespace sluice
