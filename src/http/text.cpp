#include "http/text.hpp"

#include <cstdint>

#include "base/text.hpp"

namespace sluice::http {
namespace {

std::optional<int> digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (const char small = lower(c); small >= 'a' && small <= 'f') return small - 'a' + 10;
  return {};
}

}  // namespace

std::optional<std::string> unescape(std::string_view text, bool is_query) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (text.size() - i < 3) return {};
      const auto high = digit(text[i + 1]);
      const auto low = digit(text[i + 2]);
      if (!high || !low) return {};
      plain += static_cast<char>(*high * 16 + *low);
      i += 2;
    } else {
      plain += is_query && text[i] == '+' ? ' ' : text[i];
    }
  }
  if (plain.find('\0') != std::string::npos || !is_utf8(plain)) return {};
  return plain;
}

std::string escape(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    const bool is_plain = (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
                          c == '-' || c == '.' || c == '_' || c == '~';
    if (is_plain)
      escaped += c;
    else
      (escaped += '%') += {digits[byte / 16], digits[byte % 16]};
  }
  return escaped;
}

}  // namespace sluice::http
