/// The hash slot of a key in a Redis Cluster.
///
/// Redis Cluster Specification, "Hash tags": CRC16 (CCITT, XMODEM's form) of the text between the
/// first '{' and the next '}', if there is any, else of the whole key; of that the last 14 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

constexpr std::uint16_t hash_slots = 16384;

/// The part of the key that is hashed.
std::string_view hash_tag(std::string_view key) noexcept;
/// 0 to 16383.
std::uint16_t hash_slot(std::string_view key) noexcept;

}  // namespace sluice
