/// The lots of a simulation: the same from the same seed, on every machine and with every library.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice::simulation {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) noexcept : state_(seed) {}

  /// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
  std::uint64_t next() noexcept {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  /// 0 to bound - 1. REQUIRES: bound > 0.
  std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }
  bool chance(unsigned percent) noexcept { return below(100) < percent; }
  /// From 0 to `most`, in whole microseconds.
  std::chrono::nanoseconds upto(std::chrono::nanoseconds most) noexcept {
    const auto steps = std::chrono::floor<std::chrono::microseconds>(most).count();
    return std::chrono::microseconds{below(static_cast<std::uint64_t>(steps) + 1)};
  }
  template <class T, std::size_t count>
  T one_of(const T (&choices)[count]) noexcept {
    return choices[below(count)];
  }
  /// Lots of their own, so that more draws there do not change those here.
  Dice split() noexcept { return Dice{next()}; }

 private:
  std::uint64_t state_;
};

}  // namespace sluice::simulation
