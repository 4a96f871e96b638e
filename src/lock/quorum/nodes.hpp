/// Independent Stores that answer as one, by majority: what the watchdog of their holds asks.
#pragma once

#include <memory>

#include "lock/hold/watchdog.hpp"
#include "lock/quorum/round.hpp"

namespace sluice::lock {

/// Runs batches of renewals only. Time is that of the first node's clock.
class NodesStore final : public Store {
 public:
  explicit NodesStore(Round::Nodes nodes) : nodes_(std::move(nodes)) {}

  const Round::Nodes& nodes() const noexcept { return nodes_; }
  std::size_t majority() const noexcept { return majority_of(nodes_.size()); }

  using Store::run;
  /// Of each script whose reply is an array of 1 and 0: in each place 1 or 0 where so many nodes
  /// say so that the rest cannot change it; nil where nobody can tell. Each node is asked once.
  Task<std::vector<Value>> run(Batch batch, CallOptions options) override;
  /// Throws Error: no majority answers a single command.
  Task<Value> run(Words command, CallOptions options) override;
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override;
  Task<Listener> listen(std::string channel, MessageHandler handler) override;
  Clock& clock() noexcept override { return nodes_.front()->clock(); }
  Driver* driver() noexcept override { return nullptr; }
  std::string describe() const override;

 private:
  const Round::Nodes nodes_;
};

/// The watchdog of all holds of these nodes in this process; its store is a NodesStore.
std::shared_ptr<Watchdog> watchdog_of(const Round::Nodes& nodes);

}  // namespace sluice::lock
