/// A block of a split-block filter: eight 32-bit words, in each of which a key sets one bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "bloom/memory.hpp"

namespace sluice::bloom {

constexpr std::uint64_t block_bits = 256;
constexpr std::size_t words_a_block = block_bits / 64;

/// Odd constants of the specification, one for each word.
constexpr std::array<std::uint32_t, 8> salts{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                             0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

/// Both lanes read and write 64 bits at a time: two words, the first in the lower half.
struct ScalarLane {
  /// Whether a bit of the key was not set.
  static bool add(Word* block, std::uint32_t hash) noexcept;
  static bool contains(const Word* block, std::uint32_t hash) noexcept;
};

struct Avx2Lane {
  static bool add(Word* block, std::uint32_t hash) noexcept;
  static bool contains(const Word* block, std::uint32_t hash) noexcept;
};

}  // namespace sluice::bloom
