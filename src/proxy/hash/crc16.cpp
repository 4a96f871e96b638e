// CRC-16 (CCITT, XMODEM's form) in an accumulator of 32 bits that is never cut: the upper half
// keeps shifted history. So it is not the CRC-16 of Redis Cluster, though it uses that table.
#include <array>

#include "proxy/hash/functions.hpp"

namespace sluice::proxy::hashes {
namespace {

constexpr auto table = [] {
  std::array<std::uint16_t, 256> rows{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte << 8;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 0x8000) != 0 ? rest << 1 ^ 0x1021 : rest << 1;
    rows[byte] = static_cast<std::uint16_t>(rest);
  }
  return rows;
}();

}  // namespace

std::uint32_t crc16(std::string_view key) noexcept {
  std::uint32_t crc = 0;
  for (const char byte : key)
    crc = crc << 8 ^ table[(crc >> 8 ^ static_cast<unsigned char>(byte)) & 0xff];
  return crc;
}

}  // namespace sluice::proxy::hashes
