/// The hash slot of a key in a Redis Cluster.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::lock {

/// From 0 to 16383: CRC16 (XMODEM) of the part between the first '{' and the next '}', if there is
/// any between them; else of the whole key.
constexpr std::uint16_t hash_slot(std::string_view key) noexcept {
  if (const auto open = key.find('{'); open != key.npos) {
    const auto close = key.find('}', open + 1);
    if (close != key.npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  std::uint16_t crc = 0;
  for (const char letter : key) {
    crc = static_cast<std::uint16_t>(crc ^ (static_cast<unsigned char>(letter) << 8));
    for (int bit = 0; bit < 8; ++bit)
      crc = static_cast<std::uint16_t>(crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1);
  }
  return crc % 16384;
}

}  // namespace sluice::lock
