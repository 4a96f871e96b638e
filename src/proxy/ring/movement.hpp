/// How the keys lie on the servers, and how they move from one ring to another: shares of all keys,
/// as if every hash were as likely as any other.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proxy/ring/ring.hpp"

namespace sluice::proxy {

struct Movement {
  bool exact = true;                                                 ///< false: found on a sample
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> shares;  ///< {server before, after}
};

/// REQUIRES: neither is empty nor `random`. By the arcs of the two rings when the hashes are the
/// same ones and the arcs are few enough to walk (always with ketama), else on four million hashes;
/// when the hashes differ, on a million keys "key:N". `keys`: on these, and on nothing else.
Movement movement_of(const Homes& before, const Homes& after,
                     std::span<const std::string> keys = {});

/// The share of each of `servers` servers. REQUIRES: as above.
std::vector<double> shares_of(const Homes& homes, std::size_t servers);

}  // namespace sluice::proxy
