#include "sale/order_store_text.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "sluice/error.hpp"

namespace sluice::sale {
namespace {

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
  const bool keeps_high = is_utf8(bytes);
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '%' || (byte > 0x7f && !keeps_high))
      text += fmt::format("%{:02X}", byte);
    else
      text += c;
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
