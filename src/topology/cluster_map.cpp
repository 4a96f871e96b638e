#include "topology/cluster_map.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/hash_slot.hpp"

namespace sluice::topology {
namespace {

bool are_same(const Node& one, const Node& other) {
  if (!one.id.empty() && !other.id.empty()) return one.id == other.id;
  return one.endpoint && one.endpoint == other.endpoint;
}

/// Nodes that MOVED alone has told of. Those that a cluster has are in the next view.
constexpr std::ptrdiff_t most_rumours = 64;

/// Adds `slot` to ranges that end before it.
void append_slot(std::vector<SlotRange>& ranges, std::uint16_t slot) {
  if (!ranges.empty() && ranges.back().last + 1 == slot)
    ranges.back().last = slot;
  else
    ranges.push_back({slot, slot});
}

}  // namespace

/// One merging. Nodes get places in a new table: those of the views, then the owners of the map
/// before.
class ClusterMap::Merger {
 public:
  Merger(const ClusterMap& before, std::span<const ClusterView> views) : before_(before) {
    for (const auto& view : views)
      if (view.is_ok) views_.push_back(&view);
  }

  ClusterMap merge() {
    if (views_.empty()) return before_;
    for (const auto* view : views_)
      for (const auto& node : view->nodes) take(node, *view);
    std::vector<std::vector<Claim>> told;
    for (const auto* view : views_) told.push_back(claims_of(*view));
    for (std::uint16_t slot = 0; slot < hash_slots; ++slot)
      after_.claims_[slot] = claim_of(slot, told);
    in_order();
    return std::move(after_);
  }

 private:
  /// Who is to be believed about a node: the later config epoch, then the node itself, ...
  using Trust = std::tuple<std::uint64_t, bool, std::uint64_t, Endpoint>;

  void take(const NodeView& told, const ClusterView& view) {
    Trust trust{told.node.epoch, told.is_answerer, view.current_epoch, view.answerer};
    const auto [place, is_new] = places_.emplace(told.node.id, after_.nodes_.size());
    if (is_new) {
      after_.nodes_.push_back(told.node);
      trusts_.push_back(std::move(trust));
    } else if (trusts_[place->second] < trust) {
      after_.nodes_[place->second] = told.node;
      trusts_[place->second] = std::move(trust);
    }
  }

  std::vector<Claim> claims_of(const ClusterView& view) const {
    std::vector<Claim> claims(hash_slots);
    for (const auto& node : view.nodes) {
      const Claim claim{.owner = places_.at(node.node.id), .epoch = node.node.epoch};
      for (const auto& [first, last] : node.slots)
        std::fill_n(claims.begin() + first, last - first + 1, claim);
    }
    return claims;
  }

  Claim claim_of(std::uint16_t slot, const std::vector<std::vector<Claim>>& told) {
    const Claim& old = before_.claims_[slot];
    const auto displaced = place_of(old.displaced, false);
    Claim best;
    for (const auto& view : told) {
      const Claim& claim = view[slot];
      if (claim.owner == nobody || claim.epoch < old.epoch) continue;
      if (claim.epoch == old.epoch && displaced != nobody && claim.owner == displaced) continue;
      if (best.owner == nobody || is_better(claim, best, slot, told)) best = claim;
    }
    if (best.owner != nobody) return best;
    return {.owner = place_of(old.owner, true), .displaced = displaced, .epoch = old.epoch};
  }

  bool is_better(const Claim& claim, const Claim& best, std::uint16_t slot,
                 const std::vector<std::vector<Claim>>& told) const {
    if (claim.epoch != best.epoch) return claim.epoch > best.epoch;
    if (claim.owner == best.owner) return false;
    const auto votes_for = [&](const Claim& one) {
      return std::ranges::count_if(told, [&](const auto& view) { return view[slot] == one; });
    };
    const auto votes = votes_for(claim);
    const auto most = votes_for(best);
    if (votes != most) return votes > most;
    return after_.nodes_[claim.owner].id < after_.nodes_[best.owner].id;
  }

  /// The new place of a node of the map before. One that no view knows is kept where it
  /// `is_needed`.
  std::uint16_t place_of(std::uint16_t old, bool is_needed) {
    if (old == nobody) return nobody;
    if (new_places_.empty()) new_places_.resize(before_.nodes_.size(), unknown);
    auto& place = new_places_[old];
    if (place == unknown) place = find_place(before_.nodes_[old]);
    if (place == nobody && is_needed) {
      place = static_cast<std::uint16_t>(after_.nodes_.size());
      after_.nodes_.push_back(before_.nodes_[old]);
    }
    return place;
  }

  std::uint16_t find_place(const Node& node) const {
    if (!node.id.empty()) {
      const auto found = places_.find(node.id);
      return found == places_.end() ? nobody : found->second;
    }
    const auto found = std::ranges::find_if(
        after_.nodes_, [&](const Node& other) { return are_same(node, other); });
    return found == after_.nodes_.end() ? nobody
                                        : static_cast<std::uint16_t>(found - after_.nodes_.begin());
  }

  /// By id, so that the same knowledge is the same map.
  void in_order() {
    std::vector<std::uint16_t> order(after_.nodes_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint16_t>(i);
    const auto key = [&](std::uint16_t i) {
      return std::tie(after_.nodes_[i].id, after_.nodes_[i].endpoint);
    };
    std::ranges::sort(order, {}, key);
    std::vector<std::uint16_t> rank(order.size());
    std::vector<Node> nodes;
    for (const auto place : order) {
      rank[place] = static_cast<std::uint16_t>(nodes.size());
      nodes.push_back(std::move(after_.nodes_[place]));
    }
    after_.nodes_ = std::move(nodes);
    for (auto& claim : after_.claims_) {
      if (claim.owner != nobody) claim.owner = rank[claim.owner];
      if (claim.displaced != nobody) claim.displaced = rank[claim.displaced];
    }
  }

  static constexpr std::uint16_t unknown = nobody - 1;

  const ClusterMap& before_;
  std::vector<const ClusterView*> views_;
  ClusterMap after_;
  std::unordered_map<std::string, std::uint16_t> places_;  // of the nodes of the views, by id
  std::vector<Trust> trusts_;
  std::vector<std::uint16_t> new_places_;  // of the nodes of the map before
};

ClusterMap::ClusterMap() : claims_(hash_slots) {}

ClusterMap ClusterMap::merged(std::span<const ClusterView> views) const {
  return Merger{*this, views}.merge();
}

std::optional<ClusterMap> ClusterMap::moved(std::uint16_t slot, const Endpoint& from,
                                            const Endpoint& to) const {
  const Node* const before = owner(slot);
  if (to == from || (before && before->endpoint != from)) return std::nullopt;
  ClusterMap after = *this;
  auto found = std::ranges::find(after.nodes_, to, &Node::endpoint);
  if (found == after.nodes_.end()) {
    if (nodes_.size() >= most_nodes || std::ranges::count_if(nodes_, [](const Node& one) {
                                         return one.id.empty();
                                       }) >= most_rumours)
      return std::nullopt;
    Node node;
    node.endpoint = to;
    found = after.nodes_.insert(found, std::move(node));
  }
  Claim& claim = after.claims_[slot];
  claim.displaced = claim.owner;
  claim.owner = static_cast<std::uint16_t>(found - after.nodes_.begin());
  return after;
}

const Node* ClusterMap::find(std::string_view id) const noexcept {
  const auto found = std::ranges::find(nodes_, id, &Node::id);
  return found == nodes_.end() ? nullptr : &*found;
}

const Node* ClusterMap::find(const Endpoint& endpoint) const noexcept {
  const auto found = std::ranges::find(nodes_, endpoint, &Node::endpoint);
  return found == nodes_.end() ? nullptr : &*found;
}

std::vector<const Node*> ClusterMap::replicas_of(const Node& master) const {
  std::vector<const Node*> replicas;
  for (const Node& node : nodes_)
    if (node.role == Role::replica && !master.id.empty() && node.master == master.id)
      replicas.push_back(&node);
  return replicas;
}

std::vector<SlotRange> ClusterMap::slots_of(const Node& master) const {
  std::vector<SlotRange> ranges;
  for (std::uint16_t slot = 0; slot < hash_slots; ++slot)
    if (owner(slot) == &master) append_slot(ranges, slot);
  return ranges;
}

bool ClusterMap::has_slots(const Node& node) const noexcept {
  const auto place = static_cast<std::uint16_t>(&node - nodes_.data());
  return std::ranges::find(claims_, place, &Claim::owner) != claims_.end();
}

std::size_t ClusterMap::uncovered() const noexcept {
  return static_cast<std::size_t>(std::ranges::count(claims_, nobody, &Claim::owner));
}

bool ClusterMap::is_as(const ClusterMap& other) const {
  return claims_ == other.claims_ &&
         std::ranges::equal(nodes_, other.nodes_, [](const Node& one, const Node& two) {
           Node same_offset = two;
           same_offset.offset = one.offset;
           return one == same_offset;
         });
}

bool ClusterMap::is_of_the_cluster_of(const ClusterView& view) const {
  std::set<std::string_view> ids;
  for (const Node& node : nodes_)
    if (!node.id.empty()) ids.insert(node.id);
  return ids.empty() || std::ranges::any_of(view.nodes, [&](const NodeView& one) {
           return ids.contains(one.node.id);
         });
}

std::vector<Endpoint> serving_replicas_of(const ClusterMap& map, const Endpoint& master) {
  std::vector<Endpoint> all;
  if (const auto* const node = map.find(master))
    for (const auto* const replica : map.replicas_of(*node))
      if (replica->endpoint && replica->health == Health::online) all.push_back(*replica->endpoint);
  return all;
}

bool MissingReplicas::is_due(SteadyTime now) noexcept {
  constexpr std::chrono::seconds longest{32};
  if (now < next_) return false;
  next_ = now + pause_;
  pause_ = std::min(pause_ * 2, longest);
  return true;
}

MapDifference difference(const ClusterMap& before, const ClusterMap& after) {
  MapDifference difference;
  std::set<Endpoint> stay;
  for (const Node& node : after.nodes())
    if (node.endpoint) stay.insert(*node.endpoint);
  for (const Node& node : before.nodes())
    if (node.endpoint && !stay.contains(*node.endpoint)) difference.gone.push_back(*node.endpoint);
  for (std::uint16_t slot = 0; slot < hash_slots; ++slot) {
    const Node* const old = before.owner(slot);
    const Node* const now = after.owner(slot);
    if (old && (!now || !are_same(*old, *now))) append_slot(difference.moved, slot);
  }
  return difference;
}

}  // namespace sluice::topology
