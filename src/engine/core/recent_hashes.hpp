/// The hashes of the keys that were asked for last. A script asks for each of its few keys again
/// and again, and a keyed hash of 40 bytes costs four times as much as finding it here.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/types/chained_table.hpp"

namespace sluice::engine {

/// Keys are compared whole: one that was chosen to fall into another's place costs a comparison.
class RecentHashes {
 public:
  std::uint64_t of(std::string_view key) noexcept {
    if (key.size() < shortest || key.size() > longest) return hash_of(key);
    auto& slot = slots_[place_of(key)];
    if (slot.size == key.size() && std::memcmp(slot.key.data(), key.data(), key.size()) == 0)
      return slot.hash;
    slot.hash = hash_of(key);
    slot.size = static_cast<std::uint8_t>(key.size());
    std::memcpy(slot.key.data(), key.data(), key.size());
    return slot.hash;
  }

 private:
  static constexpr std::size_t shortest = 8;
  static constexpr std::size_t longest = 55;
  static constexpr int places = 7;  // bits
  struct alignas(64) Slot {
    std::uint64_t hash;
    std::uint8_t size = 0;
    std::array<char, longest> key;
  };

  /// By eight bytes in the middle and the last: there the keys of one lock differ, and those of
  /// several.
  static std::size_t place_of(std::string_view key) noexcept {
    std::uint64_t middle = 0;
    std::uint64_t last = 0;
    std::memcpy(&middle, key.data() + (key.size() - sizeof middle) / 2, sizeof middle);
    std::memcpy(&last, key.data() + key.size() - sizeof last, sizeof last);
    return (middle ^ std::rotl(last, 13)) * 0x9E3779B97F4A7C15ULL >> (64 - places);
  }

  std::array<Slot, std::size_t{1} << places> slots_{};
};

}  // namespace sluice::engine
