/// The door to XXH64, which is compiled into the files that use it.
#pragma once

// NOLINTBEGIN(readability-identifier-naming): the library's
#define XXH_INLINE_ALL
#define XXH_NO_XXH3  // g++ -Og does not compile it
// NOLINTEND(readability-identifier-naming)
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace sluice::bloom {

/// XXH64, seed 0.
inline std::uint64_t xxh64(std::string_view key) noexcept {
  return XXH64(key.data(), key.size(), 0);
}

/// The same of a number's 8 bytes, little-endian: XXH64's own steps without its loops.
inline std::uint64_t xxh64(std::uint64_t number) noexcept {
  std::uint64_t hash = XXH_PRIME64_5 + sizeof number;
  hash ^= XXH64_round(0, number);
  hash = XXH_rotl64(hash, 27) * XXH_PRIME64_1 + XXH_PRIME64_4;
  return XXH64_avalanche(hash);
}

}  // namespace sluice::bloom
