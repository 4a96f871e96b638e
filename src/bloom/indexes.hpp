/// Which bits or counters a key has, in the kinds whose layout is our own.
#pragma once

#include <cstdint>

#include "bloom/hash.hpp"

namespace sluice::bloom {

/// Visits `hashes` numbers below `size`, until `visit` says false; whether it never did. Double
/// hashing (Kirsch and Mitzenmacher 2006); a hash is brought into the range by a multiplication
/// (Lemire 2019), which takes a tenth of a division.
template <class Visit>
bool for_each_index(Hash hash, std::uint64_t hashes, std::uint64_t size, const Visit& visit) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t step = hash.high | 1;
  std::uint64_t combined = hash.low;
  for (std::uint64_t i = 0; i < hashes; ++i, combined += step)
    if (!visit(static_cast<std::uint64_t>(Wide{combined} * size >> 64))) return false;
  return true;
}

}  // namespace sluice::bloom
