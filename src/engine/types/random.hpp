/// The engine's own randomness (SPOP, SRANDMEMBER ...): one seed, one run.
#pragma once

#include <cstdint>

namespace sluice::engine {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) noexcept : state_(seed) {}

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

}  // namespace sluice::engine
