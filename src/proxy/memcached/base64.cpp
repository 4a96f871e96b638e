#include "proxy/memcached/base64.hpp"

#include <array>
#include <cstdint>

namespace sluice::proxy {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t not_a_digit = 64;

constexpr auto values = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(not_a_digit);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  return table;
}();

}  // namespace

bool decode_base64(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const auto value = values[static_cast<unsigned char>(c)];
    if (value == not_a_digit) return false;
    bits = bits << 6 | value;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xff);
  }
  return (bits & ((1U << held) - 1)) == 0;  // no bits are left over
}

}  // namespace sluice::proxy
