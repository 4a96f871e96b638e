#include "http/text.hpp"

#include <cstdint>

namespace sluice::http {
namespace {

std::optional<int> digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (const char small = lower(c); small >= 'a' && small <= 'f') return small - 'a' + 10;
  return {};
}

/// How many bytes follow the first of a code point; empty: none begins with it.
std::optional<int> following(std::uint8_t first) noexcept {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first < 0xE0) return 1;
  if (first >= 0xE0 && first < 0xF0) return 2;
  if (first >= 0xF0 && first < 0xF5) return 3;
  return {};
}

/// The second byte excludes what has a shorter form, surrogates, and what is beyond U+10FFFF.
bool may_follow(std::uint8_t first, std::uint8_t second) noexcept {
  switch (first) {
    case 0xE0: return second >= 0xA0;
    case 0xED: return second < 0xA0;
    case 0xF0: return second >= 0x90;
    case 0xF4: return second < 0x90;
    default: return true;
  }
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<std::uint8_t>(text[i++]);
    const auto more = following(first);
    if (!more || text.size() - i < static_cast<std::size_t>(*more)) return false;
    for (int n = 0; n < *more; ++n) {
      const auto byte = static_cast<std::uint8_t>(text[i++]);
      if ((byte & 0xC0) != 0x80 || (n == 0 && !may_follow(first, byte))) return false;
    }
  }
  return true;
}

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
