/// Who waits for whom, computed from values alone.
///
/// Actors and locks are both nodes: an actor points to the locks that it waits for and to the child
/// processes that it waits for, a lock to the actors that hold it (the resource-allocation graph of
/// Holt, 1972). An actor with no outgoing edge can proceed: remove it and the edges to it, and
/// repeat. What remains is deadlocked, and every path in it leads into a cycle.
#include <algorithm>
#include <map>

#include "lock/text.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice {
namespace {

using Edge = WaitGraph::Edge;

bool takes_part(LockKind kind) { return kind != LockKind::semaphore && kind != LockKind::permits; }

std::string id_of(const OwnerId& owner, const HolderData& data) {
  if (data.actor.empty() || data.actor == "-") return owner.text;
  return data.host + ':' + std::to_string(data.pid) + ':' + data.actor;
}

class GraphBuilder {
 public:
  void add(const WatchedLock& lock) {
    const std::size_t number = graph_.locks.size();
    graph_.locks.push_back(lock.name);
    for (const auto& holder : lock.info.holders)
      graph_.holds.push_back({actor(holder.owner, holder.data), number});
    for (const auto& waiter : lock.info.waiters)
      graph_.waits.push_back({actor(waiter.owner, waiter.data), number});
  }

  WaitGraph take() {
    for (std::size_t child = 0; child < graph_.actors.size(); ++child) add_parents_of(child);
    return std::move(graph_);
  }

 private:
  std::size_t actor(const OwnerId& owner, const HolderData& data) {
    const auto [known, is_new] = numbers_.emplace(id_of(owner, data), graph_.actors.size());
    if (is_new) graph_.actors.push_back({known->first, data});
    return known->second;
  }

  void add_parents_of(std::size_t child) {
    const HolderData& data = graph_.actors[child].data;
    std::string_view rest = data.ancestors;
    while (!rest.empty()) {
      const auto end = std::min(rest.find('<'), rest.size());
      const auto parent = numbers_.find(data.host + ':' + std::string{rest.substr(0, end)});
      if (parent != numbers_.end() && parent->second != child)
        graph_.children.push_back({parent->second, child});
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  WaitGraph graph_;
  std::map<std::string, std::size_t> numbers_;
};

/// The graph with one kind of node: first the actors, then the locks.
class CycleSearch {
 public:
  explicit CycleSearch(const WaitGraph& graph)
      : graph_(graph),
        actors_(graph.actors.size()),
        to_(actors_ + graph.locks.size()),
        from_(to_.size()),
        out_(to_.size()),
        removed_(to_.size()) {
    for (const Edge& wait : graph.waits) connect(wait.actor, actors_ + wait.lock);
    for (const Edge& hold : graph.holds) connect(actors_ + hold.lock, hold.actor);
    for (const auto& [parent, child] : graph.children) connect(parent, child);
    for (std::size_t node = 0; node < to_.size(); ++node)
      if (out_[node] == 0) remove(node);
  }

  std::vector<Deadlock> find() {
    std::vector<Deadlock> found;
    for (std::size_t actor = 0; actor < actors_; ++actor) {
      while (!removed_[actor]) {
        Deadlock deadlock = take_cycle(actor);
        if (!deadlock.steps.empty()) found.push_back(std::move(deadlock));
      }
    }
    return found;
  }

 private:
  bool is_lock(std::size_t node) const { return node >= actors_; }

  void connect(std::size_t from, std::size_t to) {
    to_[from].push_back(to);
    from_[to].push_back(from);
    ++out_[from];
  }

  /// Removes `node`, and each node that then has no outgoing edge.
  void remove(std::size_t node) {
    if (removed_[node]) return;
    removed_[node] = true;
    std::vector<std::size_t> done{node};
    while (!done.empty()) {
      const std::size_t last = done.back();
      done.pop_back();
      for (const std::size_t waiting : from_[last]) {
        if (removed_[waiting] || --out_[waiting] > 0) continue;
        removed_[waiting] = true;
        done.push_back(waiting);
      }
    }
  }

  std::size_t next(std::size_t node) const {
    return *std::ranges::find_if(to_[node], [this](std::size_t to) { return !removed_[to]; });
  }

  /// Follows the edges from `start`, which is not removed, until it comes to a node again, and
  /// removes the actors of that cycle.
  Deadlock take_cycle(std::size_t start) {
    std::map<std::size_t, std::size_t> place;
    std::vector<std::size_t> path;
    for (std::size_t node = start; place.emplace(node, path.size()).second; node = next(node))
      path.push_back(node);
    path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(place[next(path.back())]));
    const auto first_lock =
        std::ranges::find_if(path, [this](std::size_t node) { return is_lock(node); });
    Deadlock deadlock;
    if (first_lock != path.end()) {
      if (!is_lock(path.back())) std::ranges::rotate(path, first_lock + 1);  // a lock last
      deadlock = deadlock_on(path);
    }
    for (const std::size_t node : path)
      if (!is_lock(node)) remove(node);
    return deadlock;
  }

  /// Before each lock of the path stand the actor that holds the lock before it, and the children
  /// through which that actor waits.
  Deadlock deadlock_on(const std::vector<std::size_t>& path) const {
    Deadlock deadlock;
    std::size_t held = path.back();
    std::size_t holder = 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (!is_lock(path[i])) continue;
      auto& step = deadlock.steps.emplace_back();
      step.actor = graph_.actors[path[holder]];
      step.holds = graph_.locks[held - actors_];
      step.waits_for = graph_.locks[path[i] - actors_];
      if (holder + 1 < i) step.child = graph_.actors[path[i - 1]];
      held = path[i];
      holder = i + 1;
    }
    return deadlock;
  }

  const WaitGraph& graph_;
  const std::size_t actors_;
  std::vector<std::vector<std::size_t>> to_;
  std::vector<std::vector<std::size_t>> from_;
  std::vector<std::size_t> out_;  // how many of `to_` are not removed
  std::vector<bool> removed_;
};

}  // namespace

WaitGraph wait_graph(const std::vector<WatchedLock>& locks) {
  GraphBuilder builder;
  for (const auto& lock : locks)
    if (takes_part(lock.kind)) builder.add(lock);
  return builder.take();
}

std::vector<Deadlock> deadlocks_in(const WaitGraph& graph) { return CycleSearch{graph}.find(); }

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
    const auto& step = steps[i];
    const auto& next = steps[(i + 1) % steps.size()];
    if (i > 0) text += "; ";
    text += to_string(step.actor) + " holds " + lock::quoted(step.holds) + " and waits ";
    if (step.child) text += "through its child " + to_string(*step.child) + ' ';
    text += "for " + lock::quoted(step.waits_for) + ", held by " +
            (steps.size() == 1 ? "itself" : to_string(next.actor));
  }
  return text + ": deadlock";
}

}  // namespace sluice
