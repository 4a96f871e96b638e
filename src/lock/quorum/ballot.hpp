/// One request for a lock of many nodes: asked of all of them, granted by a majority, and then the
/// hold that it has become.
///
///     acquire on all ──> a majority granted ──> their counters know the largest token ──> held
///              └──────> it cannot be one any more: what was granted is taken back
///
/// A node's answer that comes after the decision is part of the hold, or is taken back when there
/// is none.
#pragma once

#include "lock/mutex/names.hpp"
#include "lock/quorum/nodes.hpp"

namespace sluice::lock {

struct QuorumTerms {
  Terms terms;
  std::chrono::milliseconds node_timeout{};
  bool fenced = true;
};

class Ballot final : public Resource, public std::enable_shared_from_this<Ballot> {
 public:
  Ballot(std::shared_ptr<Watchdog> watchdog, const Names& names, const QuorumTerms& terms,
         Identity who);

  /// Once. Null: refused. Throws Error: fewer than a majority answered, or the grant came too late.
  /// What was granted is taken back before, unless that takes longer than `node_timeout`.
  Task<std::shared_ptr<Hold>> cast();

  const Script& renewal() const noexcept override;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  /// There is no entering again: 0.
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;

 private:
  const Round::Nodes& nodes() const noexcept { return store_.nodes(); }
  Task<Value> ask_acquire(Store& node) const;
  Task<Value> ask_release(Store& node) const;
  Task<Value> ask_raise(Store& node, FencingToken token) const;
  Task<bool> raise_counters(FencingToken token);
  Task<Value> release_and_report(Store& node);
  Task<void> release_in_background(Store& node);
  Round::Replies release_late_grants();
  Task<void> take_back();
  Error too_few(const Round::Replies& replies) const;

  NodesStore& store_;  // the watchdog's
  const std::shared_ptr<Watchdog> watchdog_;
  const Names names_;
  const QuorumTerms terms_;
  const Identity who_;
  std::shared_ptr<Round> round_;  // of the acquire
};

}  // namespace sluice::lock
