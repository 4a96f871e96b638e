#include "engine/types/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/integer.hpp"

namespace sluice::engine {
namespace {

/// As Redis's MAX_LONG_DOUBLE_CHARS: up to 4,933 digits stand before the point.
constexpr std::size_t longest_decimal = 5120;

/// What strtod and strtold have in common, as Redis judges them.
template <class Number, std::size_t longest, class Convert>
std::optional<Number> parse_with(Convert convert, std::string_view text) {
  if (text.empty() || text.size() > longest ||
      std::isspace(static_cast<unsigned char>(text.front())))
    return std::nullopt;
  std::array<char, longest + 1> terminated;
  std::memcpy(terminated.data(), text.data(), text.size());
  terminated[text.size()] = '\0';
  char* end = nullptr;
  errno = 0;
  const Number value = convert(terminated.data(), &end);
  if (end != terminated.data() + text.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
  if (text.empty() || text.size() > 20) return std::nullopt;
  const auto digits = text.front() == '-' ? text.substr(1) : text;
  if (digits.empty() || (digits.front() == '0' && text.size() > 1)) return std::nullopt;
  return sluice::parse_integer<std::int64_t>(text);
}

std::optional<double> parse_double(std::string_view text) {
  const auto value = parse_decimal(text);
  if (value && !std::isnan(*value)) return value;
  return parse_with<double, 255>(std::strtod, text);  // '+', hexadecimal, the smallest numbers
}

std::optional<double> parse_limit(std::string_view text) {
  if (const auto value = parse_double(text)) return value;
  const std::string terminated{text.substr(0, text.find('\0'))};
  char* end = nullptr;
  const double value = std::strtod(terminated.c_str(), &end);
  if (*end != '\0' || std::isnan(value)) return std::nullopt;
  return value;
}

std::optional<long double> parse_long_double(std::string_view text) {
  return parse_with<long double, longest_decimal - 1>(std::strtold, text);
}

std::string text_of(long double value) {
  std::array<char, longest_decimal> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::fixed, 17);
  std::string text{digits.data(), end.ptr};
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

void DoubleText::write(double value) noexcept {
  if (std::isnan(value)) return put("nan");
  if (std::isinf(value)) return put(value > 0 ? "inf" : "-inf");
  if (value == 0) return put(std::signbit(value) ? "-0" : "0");
  if (std::fabs(value) < 4503599627370496.0 && value == std::trunc(value))  // 2^52
    return put(IntegerText{static_cast<std::int64_t>(value)});

  // Takes "d.ddde+xx" apart into digits and a power of ten.
  std::array<char, 32> scientific;
  const auto end = std::to_chars(scientific.data(), scientific.data() + scientific.size(),
                                 std::fabs(value), std::chars_format::scientific);
  const std::string_view all{scientific.data(),
                             static_cast<std::size_t>(end.ptr - scientific.data())};
  const auto mark = all.find('e');
  const auto exponent = leading_number<int>(all.substr(mark + (all[mark + 1] == '+' ? 2 : 1)));
  std::array<char, 24> digits;
  digits[0] = all[0];
  const auto fraction = mark > 2 ? all.substr(2, mark - 2) : std::string_view{};
  std::ranges::copy(fraction, digits.begin() + 1);
  if (value < 0) put("-");
  write_digits({digits.data(), fraction.size() + 1}, exponent);
}

/// Without an exponent where the text stays short.
void DoubleText::write_digits(std::string_view digits, int exponent) noexcept {
  const int count = static_cast<int>(digits.size());
  const int power = exponent - count + 1;  // value = digits * 10^power
  if (power >= 0 && exponent < count + 7) {
    put(digits);
    put_zeros(power);
  } else if (power < 0 && (power > -7 || std::abs(exponent) < 4)) {
    const int whole = count + power;
    if (whole <= 0) {
      put("0.");
      put_zeros(-whole);
      put(digits);
    } else {
      put(digits.substr(0, static_cast<std::size_t>(whole)));
      put(".");
      put(digits.substr(static_cast<std::size_t>(whole)));
    }
  } else {
    put(digits.substr(0, 1));
    if (count > 1) put("."), put(digits.substr(1));
    put(exponent < 0 ? "e-" : "e+");
    put(IntegerText{std::abs(exponent)});
  }
}

void DoubleText::put(std::string_view text) noexcept {
  std::memcpy(text_.data() + size_, text.data(), text.size());
  size_ += text.size();
}

void DoubleText::put_zeros(int count) noexcept {
  std::memset(text_.data() + size_, '0', static_cast<std::size_t>(count));
  size_ += static_cast<std::size_t>(count);
}

}  // namespace sluice::engine
