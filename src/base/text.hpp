/// What several folders ask of a text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// How many bytes the UTF-8 character at the front has (Unicode 15, table 3-7); 0: there is none.
std::size_t utf8_length(std::string_view text) noexcept;
/// Whether all of it is UTF-8.
bool is_utf8(std::string_view text) noexcept;

/// Without the blanks at both ends: spaces, tabs, and what ends lines.
std::string_view trimmed(std::string_view text) noexcept;

/// Two lower-case digits a byte.
std::string hex_of(std::string_view bytes);

/// How many letters must be changed, added or removed to make one word of the other (Levenshtein).
std::size_t edit_distance(std::string_view one, std::string_view other);

}  // namespace sluice
