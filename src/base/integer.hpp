/// Numbers in text, whole or not at all.
#pragma once

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

}  // namespace sluice
