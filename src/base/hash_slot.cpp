#include "base/hash_slot.hpp"

#include <array>

namespace sluice {
namespace {

constexpr auto crc_of_byte = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    auto crc = static_cast<std::uint16_t>(byte << 8);
    for (int bit = 0; bit < 8; ++bit)
      crc = static_cast<std::uint16_t>(crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1);
    table[byte] = crc;
  }
  return table;
}();

}  // namespace

std::string_view hash_tag(std::string_view key) noexcept {
  const auto open = key.find('{');
  if (open == key.npos) return key;
  const auto close = key.find('}', open + 1);
  return close == key.npos || close == open + 1 ? key : key.substr(open + 1, close - open - 1);
}

std::uint16_t hash_slot(std::string_view key) noexcept {
  std::uint16_t crc = 0;
  for (const char letter : hash_tag(key))
    crc = static_cast<std::uint16_t>(
        crc << 8 ^ crc_of_byte[(crc >> 8 ^ static_cast<unsigned char>(letter)) & 0xff]);
  return crc % hash_slots;
}

}  // namespace sluice
