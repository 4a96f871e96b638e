/// Which node serves which slot, as far as the cluster has told: a value.
///
/// It is made of what several nodes say (ClusterView). For each slot the claim with the highest
/// config epoch counts; at the same epoch the one that most views of the round make, then the owner
/// with the smaller id. A claim of an older epoch than the map's never counts: the map does not go
/// back, whatever a node says that was cut off. What a node in state fail says does not count at
/// all. In the order of the views there is nothing.
/// Source: Redis Cluster Specification, "Hash slots configuration propagation": an owner is
/// believed by its config epoch alone.
///
/// MOVED bears no epoch. It is believed if the owner itself says it, until a claim is there of that
/// epoch or of a later one; the claim that it has answered does not count again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash_slot.hpp"
#include "sluice/clock.hpp"
#include "topology/cluster_view.hpp"

namespace sluice::topology {

/// Views of one round.
constexpr std::size_t most_views = 4;

class ClusterMap {
 public:
  ClusterMap();

  /// This map with what one round of questions has told. REQUIRES: views.size() <= most_views.
  ClusterMap merged(std::span<const ClusterView> views) const;
  /// This map after `from` has said that `slot` has moved. Nothing: it stays as it is, because
  /// `from` is not the owner here (it has the older map), or because it tells nothing new.
  /// REQUIRES: slot < hash_slots.
  std::optional<ClusterMap> moved(std::uint16_t slot, const Endpoint& from,
                                  const Endpoint& to) const;

  /// Those that a view knows, or that have slots here.
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  /// Null: none has the slot, as far as is known. REQUIRES: slot < hash_slots.
  const Node* owner(std::uint16_t slot) const noexcept {
    const auto owner = claims_[slot].owner;
    return owner == nobody ? nullptr : &nodes_[owner];
  }
  /// The config epoch by which the owner has the slot. REQUIRES: slot < hash_slots.
  std::uint64_t epoch(std::uint16_t slot) const noexcept { return claims_[slot].epoch; }
  /// Null: there is none.
  const Node* find(std::string_view id) const noexcept;
  const Node* find(const Endpoint& endpoint) const noexcept;
  std::vector<const Node*> replicas_of(const Node& master) const;
  std::vector<SlotRange> slots_of(const Node& master) const;
  /// REQUIRES: a node of this map.
  bool has_slots(const Node& node) const noexcept;
  /// How many slots nobody has, as far as is known.
  std::size_t uncovered() const noexcept;
  /// Whether it is the same map but for what changes all the time: offsets of replication.
  bool is_as(const ClusterMap& other) const;
  bool knows_nothing() const noexcept { return nodes_.empty(); }
  /// Whether a node of `view` is one of this map. A map that knows nothing is of any cluster.
  bool is_of_the_cluster_of(const ClusterView& view) const;

  friend bool operator==(const ClusterMap&, const ClusterMap&) = default;

 private:
  static constexpr std::uint16_t nobody = 0xffff;
  static_assert(most_nodes * most_views + hash_slots < nobody - 1);
  struct Claim {
    std::uint16_t owner = nobody;
    std::uint16_t displaced = nobody;  ///< by a MOVED, at the same epoch
    std::uint64_t epoch = 0;

    friend bool operator==(const Claim&, const Claim&) = default;
  };
  class Merger;

  std::vector<Node> nodes_;
  std::vector<Claim> claims_;  ///< one a slot
};

/// Where the replicas of a master are that serve. None if it is no node of the map.
std::vector<Endpoint> serving_replicas_of(const ClusterMap& map, const Endpoint& master);

/// When to doubt a map that knows no replica of a master whose replicas are wanted: after a
/// failover nodes tell of the new master sooner than of those that follow it, and nothing else
/// would ask them again. More and more seldom, since there may be none.
class MissingReplicas {
 public:
  bool is_due(SteadyTime now) noexcept;
  void found() noexcept { *this = {}; }

 private:
  std::chrono::seconds pause_{1};
  SteadyTime next_{};
};

/// What the holder of a map does when another takes its place.
struct MapDifference {
  std::vector<Endpoint> gone;    ///< no node has this endpoint any more: close its connections
  std::vector<SlotRange> moved;  ///< slots with another owner: subscribe anew, look again
};
/// A slot that had no owner has not moved. Nodes are the same by id, or by endpoint where that is
/// all that is known of one.
MapDifference difference(const ClusterMap& before, const ClusterMap& after);

}  // namespace sluice::topology
