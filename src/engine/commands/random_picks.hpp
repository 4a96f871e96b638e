/// Which elements SRANDMEMBER, HRANDFIELD and ZRANDMEMBER answer with.
#pragma once

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/types/random.hpp"

namespace sluice::engine {

/// `count` distinct places out of `size`, in random order. (The front of a Fisher-Yates shuffle.)
/// REQUIRES: count <= size.
inline std::vector<std::size_t> distinct_places(std::size_t size, std::size_t count, Dice& dice) {
  std::vector<std::size_t> places(size);
  std::iota(places.begin(), places.end(), std::size_t{0});
  for (std::size_t i = 0; i < count; ++i) std::swap(places[i], places[i + dice.below(size - i)]);
  places.resize(count);
  return places;
}

}  // namespace sluice::engine
