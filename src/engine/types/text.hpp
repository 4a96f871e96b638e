/// Numbers as Redis reads and writes them.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "resp/glob.hpp"
#include "resp/letters.hpp"

namespace sluice::engine {

/// Strict: no blanks, no '+', no leading zeros, no "-0"; so that the text of a number is its only
/// text.
std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;
/// Not NaN, no blanks around it; "inf" and hexadecimal are numbers.
std::optional<double> parse_double(std::string_view text);
/// An end of a range of scores, as Redis leaves it to strtod: also blanks before it, nothing (0),
/// and what no double can hold (infinite).
std::optional<double> parse_limit(std::string_view text);
std::optional<long double> parse_long_double(std::string_view text);

/// 17 digits after the point, trailing zeros cut: what INCRBYFLOAT stores.
std::string text_of(long double value);

/// Redis's defaults hash-max-listpack-value, set-max-listpack-value and zset-max-listpack-value:
/// with longer texts few elements are kept as many are.
inline constexpr std::size_t longest_small_text = 64;

/// A short text without an allocation.
template <std::size_t longest>
class ShortText {
 public:
  std::string_view view() const noexcept { return {text_.data(), size_}; }
  operator std::string_view() const noexcept { return view(); }

 protected:
  std::array<char, longest> text_;
  std::size_t size_ = 0;
};

/// The text of an integer.
class IntegerText : public ShortText<20> {
 public:
  explicit IntegerText(std::int64_t value) noexcept {
    size_ = static_cast<std::size_t>(
        std::to_chars(text_.data(), text_.data() + text_.size(), value).ptr - text_.data());
  }
};

/// The shortest text that reads back as the same double, laid out as Redis 7.2 does: "3", "0.1",
/// "1e+21", "inf".
class DoubleText : public ShortText<64> {
 public:
  explicit DoubleText(double value) noexcept { write(value); }

 private:
  void write(double value) noexcept;
  void write_digits(std::string_view digits, int exponent) noexcept;
  void put(std::string_view text) noexcept;
  void put_zeros(int count) noexcept;
};

using resp::glob_matches;
using resp::is_word;

}  // namespace sluice::engine
