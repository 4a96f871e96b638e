/// Nodes of a quorum in virtual time: each an engine of its own behind a line that can fail, with a
/// clock of its own that may be set.
#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "engine/embedded_store.hpp"
#include "sluice/quorum_lock.hpp"
#include "support/faulty_store.hpp"

namespace sluice::test {

struct VirtualNode {
  VirtualClock clock;
  std::unique_ptr<Store> store = engine::open_embedded({.clock = &clock});

  bool exists(std::string_view key) { return store->run({"EXISTS", key}).get().as_integer() == 1; }
};

/// The way of one client to the nodes.
class VirtualNodes {
 public:
  explicit VirtualNodes(std::size_t many) : nodes(many) { add_client(); }
  /// Whatever is under way comes to its end.
  ~VirtualNodes() {
    for (std::size_t i = 0; i < nodes.size(); ++i) bring_back(i);
    for (int round = 0; round < 3; ++round) {
      for (auto& lines : clients)
        for (auto& line : lines) line.let_go();
      advance(std::chrono::seconds{1});
    }
  }
  VirtualNodes(const VirtualNodes&) = delete;
  VirtualNodes& operator=(const VirtualNodes&) = delete;

  /// Lines of another client: of the nodes it sees the same, of their failures its own.
  std::deque<FaultyStore>& add_client() {
    auto& lines = clients.emplace_back();
    for (auto& node : nodes) lines.emplace_back(*node.store);
    return lines;
  }
  static std::vector<Store*> stores(std::deque<FaultyStore>& lines) {
    std::vector<Store*> stores;
    for (auto& line : lines) stores.push_back(&line);
    return stores;
  }
  std::vector<Store*> stores() { return stores(clients.front()); }
  FaultyStore& line(std::size_t node) { return clients.front()[node]; }

  void take_down(std::size_t node) {
    for (auto& lines : clients) lines[node].plan = [](std::string_view) { return Fault::refused; };
  }
  void bring_back(std::size_t node) {
    for (auto& lines : clients) lines[node].plan = [](std::string_view) { return Fault::none; };
  }
  void empty(std::size_t node) { nodes[node].store->run({"FLUSHALL"}).get(); }

  /// Time passes for all in small steps.
  void advance(std::chrono::nanoseconds by) {
    constexpr std::chrono::nanoseconds step = std::chrono::milliseconds{5};
    while (by > std::chrono::nanoseconds{0}) {
      const auto now = std::min(by, step);
      for (std::size_t i = nodes.size(); i-- > 0;) nodes[i].clock.advance(now);
      by -= now;
    }
  }
  /// At how many nodes there is a hold of `key`.
  std::size_t holders(std::string_view key) {
    std::size_t many = 0;
    for (auto& node : nodes) many += node.exists(key) ? 1 : 0;
    return many;
  }

  std::deque<VirtualNode> nodes;
  std::deque<std::deque<FaultyStore>> clients;
};

/// Acquires in the background.
class QuorumVisitor {
 public:
  QuorumVisitor(QuorumLock& lock, std::chrono::milliseconds wait, std::stop_token stop = {}) {
    spawn(visit(lock, wait, std::move(stop)),
          [this](std::exception_ptr error) { error_ = std::move(error); });
  }
  QuorumVisitor(const QuorumVisitor&) = delete;
  QuorumVisitor& operator=(const QuorumVisitor&) = delete;

  bool waits() const { return !done_ && !error_; }
  bool failed() const { return error_ != nullptr; }
  bool in() const { return held.has_value(); }

  std::optional<Held> held;

 private:
  Task<void> visit(QuorumLock& lock, std::chrono::milliseconds wait, std::stop_token stop) {
    auto acquiring = lock.try_acquire(wait, std::move(stop));
    held = co_await acquiring;
    done_ = true;
  }

  bool done_ = false;
  std::exception_ptr error_;
};

}  // namespace sluice::test
