/// One attempt to get a lock of many nodes, and the hold that comes of it.
///
///     acquire on all ──> a majority granted ──> their counters know the largest token ──> held
///              └──────> a majority cannot grant any more: what was granted is taken back
///
/// A grant that comes after the decision is part of the hold, or is taken back if there is no hold.
#pragma once

#include "lock/mutex/names.hpp"
#include "lock/quorum/quorum_store.hpp"

namespace sluice::lock {

struct QuorumTerms {
  Terms terms;
  std::chrono::milliseconds node_timeout{};
  bool fenced = true;
};

class Attempt final : public Resource, public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(std::shared_ptr<Watchdog> watchdog, const Names& names, const QuorumTerms& terms,
          Identity who);

  /// Once. Null: refused. Throws Error: fewer than a majority answered, or the grant came too late.
  /// What was granted is taken back before, unless that takes longer than `node_timeout`.
  Task<std::shared_ptr<Hold>> acquire();

  const Script& renewal() const noexcept override;
  void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const override;
  Task<Value> ask_end(const Identity& who, CallOptions options) override;
  /// 0: such a hold is never entered again.
  Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) override;

 private:
  const Vote::Nodes& nodes() const noexcept { return store_.nodes(); }
  Task<Value> ask_acquire(Store& node) const;
  Task<Value> ask_release(Store& node) const;
  Task<Value> ask_raise(Store& node, FencingToken token) const;
  Task<bool> raise_counters(FencingToken token);
  Task<Value> release_and_report(Store& node);
  Task<void> release_in_background(Store& node);
  Vote::Replies release_late_grants();
  Task<void> take_back();
  Error too_few(const Vote::Replies& replies) const;

  QuorumStore& store_;  // the watchdog's
  const Names names_;
  const QuorumTerms terms_;
  const Identity who_;
  std::shared_ptr<Vote> vote_;  // of the acquire
};

}  // namespace sluice::lock
