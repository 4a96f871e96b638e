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
  const Message lost{.kind = Message::Kind::lost,
                     .channel = prefix_,
                     .payload = "slots of the cluster have another master"};
  handler_.call(lost, [&] {
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
    const bool was_told = is_told_;
    if (!joined.empty() || !left.empty()) is_told_ = is_told_by_all();
    return was_told && !joined.empty();
  });
  for (const auto& one : left) one.client->trackers().remove(*one.tracker);
  // A node that has left tells no more of what was read there.
  handler_.call({.kind = Message::Kind::gap, .channel = prefix_, .payload = {}}, [&] {
    const std::lock_guard lock{mutex_};
    return is_told_ && !left.empty();
  });
  for (const auto& one : joined) one.client->trackers().add(one.tracker);
}

bool ClusterTrackers::Tracker::is_told_by_all() const {
  return !nodes_.empty() &&
         std::ranges::all_of(nodes_, [](const auto& one) { return one.second.is_told; });
}

/// A gap that one node brings to an end says that all of them tell: behind the loss of another one
/// it would be wrong. So what is told is decided in turn with the telling.
void ClusterTrackers::Tracker::take(const Node* from, const Message& message) {
  handler_.call(message, [&] {
    const std::lock_guard lock{mutex_};
    const auto at =
        std::ranges::find(nodes_, from, [](const auto& one) { return one.first.get(); });
    if (at == nodes_.end()) return false;
    switch (message.kind) {
      case Message::Kind::published: return is_told_;
      case Message::Kind::gap: at->second.is_told = true; return is_told_ = is_told_by_all();
      // Before the first gap, too: a store that refuses says so.
      case Message::Kind::lost: at->second.is_told = is_told_ = false; return true;
    }
    return false;
  });
}

void ClusterTrackers::Tracker::end() {
  {
    const std::lock_guard following{following_};
    has_ended_ = true;
    change({});
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
