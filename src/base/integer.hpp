/// Numbers in text, whole or not at all.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace sluice {

/// Empty: `text` is no number, has something behind it, or is beyond what T holds. No blanks, no
/// '+'.
template <class T>
std::optional<T> parse_integer(std::string_view text, int base = 10) noexcept {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [rest, wrong] = std::from_chars(text.data(), end, value, base);
  if (wrong != std::errc{} || rest != end) return std::nullopt;
  return value;
}

/// Decimal digits alone, at least one, as many as you like.
inline bool is_digits(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace sluice
