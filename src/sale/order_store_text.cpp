#include <cstdint>

#include "sale/order_store_sql.hpp"

namespace sluice::sale {
namespace {

/// Length of the well-formed UTF-8 sequence at the front (Unicode 15, table 3-7); 0: none.
std::size_t sequence_length(std::string_view text) noexcept {
  struct Row {
    unsigned char first_low, first_high, second_low, second_high;
    std::size_t length;
  };
  static constexpr Row rows[] = {
      {0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
      {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
      {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
  };
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  for (const auto& row : rows) {
    if (byte(0) < row.first_low || byte(0) > row.first_high) continue;
    if (row.length == 1) return 1;
    if (text.size() < row.length || byte(1) < row.second_low || byte(1) > row.second_high) return 0;
    for (std::size_t at = 2; at < row.length; ++at)
      if ((byte(at) & 0xc0) != 0x80) return 0;
    return row.length;
  }
  return 0;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_plain(std::string_view text) noexcept {
  for (const char c : text)
    if (c < 0x20 || c > 0x7e || c == '%') return false;
  return true;
}

int value_of(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::string to_column(std::string_view bytes) {
  if (is_plain(bytes)) return std::string{bytes};
  static constexpr char digits[] = "0123456789ABCDEF";
  const bool keeps_high = is_utf8(bytes);
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '%' || (byte > 0x7f && !keeps_high)) {
      text += '%';
      text += digits[byte >> 4];
      text += digits[byte & 15];
    } else {
      text += c;
    }
  }
  return text;
}

std::string from_column(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      bytes += text[at];
      continue;
    }
    const int high = text.size() - at > 2 ? value_of(text[at + 1]) : -1;
    const int low = high >= 0 ? value_of(text[at + 2]) : -1;
    if (low < 0)
      throw Error{Errc::corrupt,
                  "the database holds an id that Sluice did not write: " + std::string{text}};
    bytes += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return bytes;
}

}  // namespace sluice::sale
