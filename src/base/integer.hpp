/// Numbers in text. No blanks, no '+'.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace sluice {

/// Empty: `text` is no number, has something behind it, or is beyond what T holds.
template <class T>
std::optional<T> parse_integer(std::string_view text, int base = 10) noexcept {
  T value{};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, wrong] = std::from_chars(begin, end, value, base);
  if (wrong != std::errc{} || rest != end) return std::nullopt;
  return value;
}

/// The same of a number that may have a fraction and an exponent; "inf" and "nan" are some, too.
inline std::optional<double> parse_decimal(std::string_view text) noexcept {
  double value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, wrong] = std::from_chars(begin, end, value);
  if (wrong != std::errc{} || rest != end) return std::nullopt;
  return value;
}

/// The number that `text` begins with; `otherwise`: it begins with none.
template <class T>
T leading_number(std::string_view text, T otherwise = {}) noexcept {
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

/// Decimal digits alone, at least one, as many as you like.
inline bool is_digits(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace sluice
