// The CRC-32 of zip and Ethernet.
#include <array>

#include "proxy/hash/functions.hpp"

namespace sluice::proxy::hashes {
namespace {

constexpr auto table = [] {
  std::array<std::uint32_t, 256> rows{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? rest >> 1 ^ 0xedb88320 : rest >> 1;
    rows[byte] = rest;
  }
  return rows;
}();

}  // namespace

std::uint32_t crc32a(std::string_view key) noexcept {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : key)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

}  // namespace sluice::proxy::hashes
