/// A block of a split-block filter: eight 32-bit words, in each of which a key sets one bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bloom/memory.hpp"

namespace sluice::bloom {

constexpr std::uint64_t block_bits = 256;
constexpr std::size_t words_a_block = block_bits / 64;

/// Odd constants of the specification, one for each word.
constexpr std::array<std::uint32_t, 8> salts{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                             0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

/// All blocks of a filter.
struct Blocks {
  Word* of(std::uint64_t hash) const noexcept {
    return words + ((hash >> 32) * count >> 32) * words_a_block;
  }

  Word* words;
  std::uint64_t count;
};

/// Of a batch of keys at most: an answer is a bit of a number, the first the lowest.
using Hashes = std::span<const std::uint64_t>;
constexpr std::size_t batch = 64;

/// Both lanes do the same. An add says whether a bit of the key was missing when it looked.
struct ScalarLane {
  static bool add(const Blocks& blocks, std::uint64_t hash, BloomAdders adders) noexcept;
  static bool contains(const Blocks& blocks, std::uint64_t hash) noexcept;
  static std::uint64_t add_all(const Blocks& blocks, Hashes hashes, BloomAdders adders) noexcept;
  static std::uint64_t contains_all(const Blocks& blocks, Hashes hashes) noexcept;
};

struct Avx2Lane {
  static bool add(const Blocks& blocks, std::uint64_t hash, BloomAdders adders) noexcept;
  static bool contains(const Blocks& blocks, std::uint64_t hash) noexcept;
  static std::uint64_t add_all(const Blocks& blocks, Hashes hashes, BloomAdders adders) noexcept;
  static std::uint64_t contains_all(const Blocks& blocks, Hashes hashes) noexcept;
};

}  // namespace sluice::bloom
