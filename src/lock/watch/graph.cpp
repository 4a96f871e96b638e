/// Who waits for whom, on values alone.
///
/// Actors and locks are both nodes: an actor points to the locks that it waits for, a lock to the
/// actors that hold it (the resource-allocation graph of Holt, 1972). Whoever points nowhere can go
/// on; whoever points only to such can go on after them; and so forth. Those who are left can not,
/// and from any of them every way leads into a circle.
#include <algorithm>
#include <map>

#include "lock/hold/steps.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice {
namespace {

using Edge = WaitGraph::Edge;

bool takes_part(LockKind kind) { return kind != LockKind::semaphore && kind != LockKind::permits; }

std::string id_of(const OwnerId& owner, const HolderData& data) {
  if (data.actor.empty() || data.actor == "-") return owner.text;
  return data.host + ':' + std::to_string(data.pid) + ':' + data.actor;
}

class Builder {
 public:
  void add(const WatchedLock& lock) {
    const std::size_t number = graph_.locks.size();
    graph_.locks.push_back(lock.name);
    for (const auto& holder : lock.info.holders)
      graph_.holds.push_back({actor(holder.owner, holder.data), number});
    for (const auto& waiter : lock.info.waiters)
      graph_.waits.push_back({actor(waiter.owner, waiter.data), number});
  }
  WaitGraph take() { return std::move(graph_); }

 private:
  std::size_t actor(const OwnerId& owner, const HolderData& data) {
    const auto [known, is_new] = numbers_.emplace(id_of(owner, data), graph_.actors.size());
    if (is_new) graph_.actors.push_back({known->first, data});
    return known->second;
  }

  WaitGraph graph_;
  std::map<std::string, std::size_t> numbers_;
};

/// The graph with one kind of node: first the actors, then the locks.
class Circles {
 public:
  explicit Circles(const WaitGraph& graph)
      : graph_(graph),
        actors_(graph.actors.size()),
        to_(actors_ + graph.locks.size()),
        from_(to_.size()),
        out_(to_.size()),
        gone_(to_.size()) {
    for (const Edge& wait : graph.waits) connect(wait.actor, actors_ + wait.lock);
    for (const Edge& hold : graph.holds) connect(actors_ + hold.lock, hold.actor);
    for (std::size_t node = 0; node < to_.size(); ++node)
      if (out_[node] == 0) let_go(node);
  }

  std::vector<Deadlock> find() {
    std::vector<Deadlock> found;
    for (std::size_t actor = 0; actor < actors_; ++actor) {
      while (!gone_[actor]) found.push_back(take_circle(actor));
    }
    return found;
  }

 private:
  void connect(std::size_t from, std::size_t to) {
    to_[from].push_back(to);
    from_[to].push_back(from);
    ++out_[from];
  }

  /// `node` is out of it, and so is who waits for nobody else.
  void let_go(std::size_t node) {
    if (gone_[node]) return;
    gone_[node] = true;
    std::vector<std::size_t> freed{node};
    while (!freed.empty()) {
      const std::size_t free = freed.back();
      freed.pop_back();
      for (const std::size_t waiting : from_[free]) {
        if (gone_[waiting] || --out_[waiting] > 0) continue;
        gone_[waiting] = true;
        freed.push_back(waiting);
      }
    }
  }

  std::size_t next(std::size_t node) const {
    return *std::ranges::find_if(to_[node], [this](std::size_t to) { return !gone_[to]; });
  }

  /// Follows the way from `start`, which is not gone, until it comes to where it was.
  Deadlock take_circle(std::size_t start) {
    std::map<std::size_t, std::size_t> place_on_way;
    std::vector<std::size_t> way;
    for (std::size_t node = start; place_on_way.emplace(node, way.size()).second; node = next(node))
      way.push_back(node);
    way.erase(way.begin(),
              way.begin() + static_cast<std::ptrdiff_t>(place_on_way[next(way.back())]));
    if (way.front() >= actors_) std::ranges::rotate(way, way.begin() + 1);  // an actor first
    Deadlock deadlock;
    for (std::size_t i = 0; i < way.size(); i += 2) {
      const std::size_t held = way[(i + way.size() - 1) % way.size()];
      deadlock.steps.push_back({.actor = graph_.actors[way[i]],
                                .holds = graph_.locks[held - actors_],
                                .waits_for = graph_.locks[way[i + 1] - actors_]});
    }
    for (std::size_t i = 0; i < way.size(); i += 2) let_go(way[i]);
    return deadlock;
  }

  const WaitGraph& graph_;
  const std::size_t actors_;
  std::vector<std::vector<std::size_t>> to_;
  std::vector<std::vector<std::size_t>> from_;
  std::vector<std::size_t> out_;  // how many of `to_` are not gone
  std::vector<bool> gone_;
};

}  // namespace

WaitGraph wait_graph(const std::vector<WatchedLock>& locks) {
  Builder builder;
  for (const auto& lock : locks)
    if (takes_part(lock.kind)) builder.add(lock);
  return builder.take();
}

std::vector<Deadlock> deadlocks_in(const WaitGraph& graph) { return Circles{graph}.find(); }

std::string to_string(const LockActor& actor) {
  const HolderData& data = actor.data;
  if (data.host.empty()) return actor.id;
  std::string text = data.label.empty() ? data.host : data.label + '@' + data.host;
  text += " (pid " + std::to_string(data.pid) + ", ";
  return text + (data.actor == "-" ? "owner " + actor.id : data.actor) + ')';
}

std::string to_string(const Deadlock& deadlock) {
  std::string text;
  const auto& steps = deadlock.steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& next = steps[(i + 1) % steps.size()];
    if (i > 0) text += "; ";
    text += to_string(steps[i].actor) + " holds " + lock::quoted(steps[i].holds) +
            " and waits for " + lock::quoted(steps[i].waits_for) + ", held by " +
            (steps.size() == 1 ? "itself" : to_string(next.actor));
  }
  return text + ": deadlock";
}

}  // namespace sluice
