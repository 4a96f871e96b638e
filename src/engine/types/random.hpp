/// The engine's own randomness (SPOP, SRANDMEMBER ...): the same seed draws the same elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace sluice::engine {

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) noexcept : state_(seed) {}

  /// Uniform in [0, bound). REQUIRES: bound > 0. (Lemire's multiplication; the bias is below 2^-32
  /// for our bounds.)
  std::uint64_t below(std::uint64_t bound) noexcept {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;

  /// SplitMix64 (Steele, Lea, Flood 2014).
  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

/// `count` distinct indexes below `size`, in random order. (The front of a Fisher-Yates shuffle.)
/// REQUIRES: count <= size.
inline std::vector<std::size_t> distinct_indexes(std::size_t size, std::size_t count,
                                                 SeededRandom& rng) {
  std::vector<std::size_t> indexes(size);
  std::iota(indexes.begin(), indexes.end(), std::size_t{0});
  for (std::size_t i = 0; i < count; ++i) std::swap(indexes[i], indexes[i + rng.below(size - i)]);
  indexes.resize(count);
  return indexes;
}

}  // namespace sluice::engine
