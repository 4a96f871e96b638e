/// In how many places something has to be before it counts.
#pragma once

#include <compare>
#include <cstdint>

#include "sluice/standard.hpp"

namespace sluice {

/// Whether what a call has done, as the grant of a lock or the invalidation of a cached value, has
/// to be in more than one place before it counts.
struct Durability {
  /// So many replicas must have it, by WAIT. 0: none. When they have not in time the call throws
  /// Error (unsynced), and a grant is taken back. More survives a failover in more cases, and costs
  /// a round trip to the replicas for each call.
  std::uint32_t replicas = 0;
  std::chrono::milliseconds within = std::chrono::seconds{1};

  friend auto operator<=>(const Durability&, const Durability&) = default;
};

}  // namespace sluice
