#include "redis/cluster_trackers.hpp"

#include <algorithm>

#include "redis/cluster.hpp"

namespace sluice::redis {

void ClusterTrackers::Tracker::follow(const std::vector<NodePtr>& masters) {
  const std::lock_guard following{following_};
  if (!has_ended_) change(masters);
}

void ClusterTrackers::Tracker::follow_too(const NodePtr& node) {
  const std::lock_guard following{following_};
  std::vector<NodePtr> all;
  {
    const std::lock_guard lock{mutex_};
    if (has_ended_ || nodes_.contains(node)) return;
    for (const auto& [known, at] : nodes_) all.push_back(known);
  }
  all.push_back(node);
  change(all);
}

void ClusterTrackers::Tracker::change(const std::vector<NodePtr>& nodes) {
  std::vector<AtNode> joined, left;
  bool was_told = false, is_told = false;
  {
    const std::lock_guard lock{mutex_};
    for (auto one = nodes_.begin(); one != nodes_.end();) {
      if (std::ranges::find(nodes, one->first) != nodes.end()) {
        ++one;
      } else {
        left.push_back(one->second);
        one = nodes_.erase(one);
      }
    }
    for (const auto& node : nodes) {
      if (nodes_.contains(node)) continue;
      auto take = [weak = weak_from_this(), from = node.get()](const Message& message) {
        if (const auto self = weak.lock()) self->take(from, message);
      };
      auto tracker = std::make_shared<Trackers::Tracker>(prefix_, std::move(take));
      joined.push_back(nodes_[node] = {.client = node->client, .tracker = std::move(tracker)});
    }
    was_told = is_told_;
    if (!joined.empty() || !left.empty()) is_told = is_told_ = is_told_by_all();
  }
  for (const auto& one : left) one.client->trackers().remove(*one.tracker);
  if (was_told && !joined.empty())
    handler_.call({.kind = Message::Kind::lost,
                   .channel = prefix_,
                   .payload = "slots of the cluster have another master"});
  // A node that has left tells no more of what was read there.
  if (is_told && !left.empty())
    handler_.call({.kind = Message::Kind::gap, .channel = prefix_, .payload = {}});
  for (const auto& one : joined) one.client->trackers().add(one.tracker);
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
  handler_.end();
  const std::lock_guard following{following_};
  has_ended_ = true;
  change({});
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

std::vector<std::shared_ptr<ClusterTrackers::Tracker>> ClusterTrackers::all() {
  const std::lock_guard lock{mutex_};
  return all_;
}

void ClusterTrackers::follow(const std::vector<NodePtr>& masters) {
  for (const auto& tracker : all()) tracker->follow(masters);
}

void ClusterTrackers::follow_too(const NodePtr& node) {
  for (const auto& tracker : all()) tracker->follow_too(node);
}

}  // namespace sluice::redis
