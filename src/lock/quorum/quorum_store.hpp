/// Independent Stores that answer as one, by majority: the Store of their holds' watchdog.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lock/hold/watchdog.hpp"
#include "lock/quorum/vote.hpp"

namespace sluice::lock {

/// Runs batches of renewals only. Time is that of the first node's clock.
class QuorumStore final : public Store {
 public:
  explicit QuorumStore(Vote::Nodes nodes) : nodes_(std::move(nodes)) {}

  const Vote::Nodes& nodes() const noexcept { return nodes_; }
  std::size_t majority() const noexcept { return majority_of(nodes_.size()); }

  using Store::run;
  /// For scripts that reply an array of 1 and 0. In each place stands 1 or 0 if the other nodes
  /// cannot change it any more, else nil. Each node is asked once.
  Task<std::vector<Value>> run(Batch batch, CallOptions options) override;
  /// Throws Error: no majority answers a single command.
  Task<Value> run(Words command, CallOptions options) override;
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override;
  Task<Listener> listen(std::string channel, MessageHandler handler) override;
  void call_back(std::function<void()> callback) noexcept override {
    nodes_.front()->call_back(std::move(callback));
  }
  Clock& clock() noexcept override { return nodes_.front()->clock(); }
  Driver* driver() noexcept override { return nullptr; }
  /// One of the nodes is a cluster: its scripts see keys of one slot.
  bool is_sharded() const noexcept override {
    return std::ranges::any_of(nodes_, &Store::is_sharded);
  }
  std::string describe() const override;

  /// Whether the log may be told of trouble with that lock: once a minute.
  bool may_tell_of(const std::string& lock);

 private:
  const Vote::Nodes nodes_;
  std::mutex mutex_;
  std::map<std::string, SteadyTime> told_;  // which lock, when
};

/// The one watchdog in this process of all holds of these nodes. Its store is a QuorumStore.
std::shared_ptr<Watchdog> watchdog_of(const Vote::Nodes& nodes);

}  // namespace sluice::lock
