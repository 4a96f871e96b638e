/// The scripts of FairMutex as functions: what is asked, and what the answer means. Nothing is
/// decided here.
#pragma once

#include "lock/fair/names.hpp"
#include "lock/hold/hold.hpp"
#include "lock/wait/queued_wait.hpp"

namespace sluice::lock {

/// What all holds by one FairMutex share.
struct FairTerms {
  Terms terms;
  Durability durability;

  /// How long whoever is handed the lock has to say that it took over.
  std::chrono::milliseconds claim() const noexcept;
  /// Whether a grant by message has to be confirmed by another question: the replicas have to know
  /// it, or no renewal would make a lease of the claim.
  bool asks_after_hand_over() const noexcept {
    return durability.replicas > 0 || (!terms.watched && claim() < terms.lease);
  }
};

class FairWire {
 public:
  FairWire(Store& store, const std::string& name, FairTerms terms)
      : store_(store), names_(name), terms_(terms) {}

  const FairNames& names() const noexcept { return names_; }
  const FairTerms& terms() const noexcept { return terms_; }

  /// Repeatable: a copy finds the request id of the first. `inbox`: where to hear of a hand-over;
  /// empty: the request is not put into the queue. Throws Error (unsynced) when the replicas have
  /// it not in time; it is taken back then.
  Task<AcquireReply> ask_acquire(Identity who, std::string inbox) const;
  Task<Value> ask_end(const Identity& who, CallOptions options) const;
  /// The place in the queue too.
  Task<Value> ask_give_up(const Identity& who) const;
  Task<Value> ask_force_release() const;
  Task<LockInfo> ask_info() const;

 private:
  Store& store_;
  const FairNames names_;
  const FairTerms terms_;
};

}  // namespace sluice::lock
