// Austin Appleby's MurmurHash2 of 32 bits, little endian, seeded by the length.
#include "proxy/hash/functions.hpp"
#include "proxy/hash/words.hpp"

namespace sluice::proxy::hashes {

std::uint32_t murmur(std::string_view key) noexcept {
  constexpr std::uint32_t multiplier = 0x5bd1e995;
  const auto size = static_cast<std::uint32_t>(key.size());
  std::uint32_t hash = 0xdeadbeef * size ^ size;

  for (; key.size() >= 4; key.remove_prefix(4)) {
    std::uint32_t word = word_of(key) * multiplier;
    word ^= word >> 24;
    hash = hash * multiplier ^ word * multiplier;
  }
  if (!key.empty()) hash = (hash ^ short_word_of(key)) * multiplier;

  hash ^= hash >> 13;
  hash *= multiplier;
  return hash ^ hash >> 15;
}

}  // namespace sluice::proxy::hashes
