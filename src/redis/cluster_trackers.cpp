#include "redis/cluster_trackers.hpp"

#include <algorithm>

#include "redis/cluster.hpp"

namespace sluice::redis {

void ClusterTrackers::Tracker::follow(const std::vector<NodePtr>& masters) {
  const std::lock_guard following{following_};
  std::vector<NodePtr> joined;
  std::vector<std::pair<NodePtr, std::shared_ptr<Trackers::Tracker>>> left;
  bool was_told = false;
  {
    const std::lock_guard lock{mutex_};
    if (has_ended_) return;
    for (const auto& node : masters)
      if (!nodes_.contains(node)) joined.push_back(node);
    for (auto one = nodes_.begin(); one != nodes_.end();) {
      if (std::ranges::find(masters, one->first) != masters.end()) {
        ++one;
      } else {
        left.emplace_back(one->first, one->second.tracker);
        one = nodes_.erase(one);
      }
    }
    for (const auto& node : joined) {
      auto take = [weak = weak_from_this(), from = node.get()](const Message& message) {
        if (const auto self = weak.lock()) self->take(from, message);
      };
      nodes_[node].tracker = std::make_shared<Trackers::Tracker>(prefix_, std::move(take));
    }
    if (!joined.empty()) was_told = std::exchange(is_told_, false);
  }
  if (was_told)
    handler_.call({.kind = Message::Kind::lost,
                   .channel = prefix_,
                   .payload = "slots of the cluster have another master"});
  for (const auto& [node, tracker] : left) node->client->trackers().remove(*tracker);
  for (const auto& node : joined) {
    std::shared_ptr<Trackers::Tracker> tracker;
    {
      const std::lock_guard lock{mutex_};
      tracker = nodes_[node].tracker;
    }
    node->client->trackers().add(std::move(tracker));
  }
}

bool ClusterTrackers::Tracker::is_told_by_all() const {
  return !nodes_.empty() &&
         std::ranges::all_of(nodes_, [](const auto& one) { return one.second.is_told; });
}

void ClusterTrackers::Tracker::take(const Node* from, const Message& message) {
  bool tells = false;
  {
    const std::lock_guard lock{mutex_};
    const auto at =
        std::ranges::find(nodes_, from, [](const auto& one) { return one.first.get(); });
    if (at == nodes_.end()) return;
    switch (message.kind) {
      case Message::Kind::published: tells = is_told_; break;
      case Message::Kind::gap:
        at->second.is_told = true;
        tells = is_told_ = is_told_by_all();
        break;
      case Message::Kind::lost:
        at->second.is_told = false;
        // Before the first gap, too: a store that refuses says so.
        tells = std::exchange(is_told_, false) || !is_told_by_all();
        break;
    }
  }
  if (tells) handler_.call(message);
}

void ClusterTrackers::Tracker::end() {
  follow({});
  {
    const std::lock_guard lock{mutex_};
    has_ended_ = true;
  }
  handler_.end();
}

void ClusterTrackers::add(std::shared_ptr<Tracker> tracker, const std::vector<NodePtr>& masters) {
  {
    const std::lock_guard lock{mutex_};
    all_.push_back(tracker);
  }
  tracker->follow(masters);
}

void ClusterTrackers::remove(const std::shared_ptr<Tracker>& tracker) {
  {
    const std::lock_guard lock{mutex_};
    std::erase(all_, tracker);
  }
  tracker->end();
}

void ClusterTrackers::follow(const std::vector<NodePtr>& masters) {
  std::vector<std::shared_ptr<Tracker>> all;
  {
    const std::lock_guard lock{mutex_};
    all = all_;
  }
  for (const auto& tracker : all) tracker->follow(masters);
}

}  // namespace sluice::redis
