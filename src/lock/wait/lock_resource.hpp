/// A lock as this process uses it: how it asks for a hold, and waits for it in the server's queue.
///
///     one request ──> granted
///      └─> refused, and the caller does not wait: out
///      └─> refused: a place in the server's queue (QueuedWait), until granted, time, or stop
///
/// Here each waiter has a place of its own in the queue; LocalQueue has one for all of its process.
#pragma once

#include <memory>
#include <stop_token>

#include "lock/hold/owner.hpp"
#include "lock/hold/replication.hpp"
#include "lock/hold/resource.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/text.hpp"
#include "lock/wait/acquire_reply.hpp"
#include "lock/wait/inbox.hpp"
#include "sluice/lock_info.hpp"

namespace sluice::lock {

/// What locks of one Store by the same options share.
struct LockCommon {
  LockCommon(Store& store, const Terms& terms, const Durability& durability);

  const Terms terms;
  const Durability durability;
  const std::shared_ptr<Watchdog> watchdog;
  const std::shared_ptr<Inboxes> inboxes;
};

/// Threads: any.
class LockResource : public Resource, public std::enable_shared_from_this<LockResource> {
 public:
  /// Throws Error (bad_argument) as check_one_slot().
  LockResource(std::shared_ptr<LockCommon> common, std::string key)
      : Resource(common->watchdog, std::move(key)), common_(std::move(common)) {
    check_one_slot(store(), "lock", this->key());
  }

  const Terms& lease_terms() const noexcept { return common_->terms; }
  Durability durability() const noexcept override { return common_->durability; }

  /// One request. Null: refused.
  virtual Task<std::shared_ptr<Hold>> try_enter(Identity who);
  /// Waits for a hold until `until` (steady), or until `stop`; an outage is waited out. Null: there
  /// was none.
  virtual Task<std::shared_ptr<Hold>> enter(Identity who, SteadyTime until, std::stop_token stop);

  /// The holders and the waiters, in one round trip.
  virtual Task<LockInfo> info() = 0;
  /// Ends whatever hold there is. The holder learns it at once if it is latest_hold(). False: there
  /// was none.
  Task<bool> force_release();

  /// Throws Error (bad_argument) if `owner` must not ask for this hold.
  virtual void check(OwnerState& /*owner*/) const {}

 protected:
  /// Asks for a hold; `who` must outlive the Task. Repeatable: a copy finds the request id of the
  /// first. `inbox`: where to hear of a hand-over; empty: the request is not put into the queue.
  /// `came`: see QueuedWait::Ask.
  /// Throws Error (unsynced) when too few replicas have the hold in time; it is taken back then.
  virtual Task<AcquireReply> ask_acquire(const Identity& who, const std::string& inbox,
                                         std::uint64_t came) = 0;
  virtual Task<Value> ask_force_release() = 0;
  /// What the acquire script replied. Throws Error (protocol) for what it cannot have replied.
  virtual AcquireReply read_acquire_reply(const Value& reply, std::string_view owner) const = 0;
  /// Whether a hold that was handed over has to be confirmed by another request: the replicas have
  /// to know it too.
  bool asks_after_hand_over() const noexcept {
    return durability().replicas > 0 || lease_terms().asks_after_hand_over();
  }
  /// A hold came into being.
  virtual void granted(const std::shared_ptr<Hold>& /*hold*/) {}
  /// The hold of this process that is in force, or was last, where this is known.
  virtual std::shared_ptr<Hold> latest_hold() { return nullptr; }

  /// ask_acquire() by a script. The words are copied before this returns.
  Task<AcquireReply> request_hold(const Identity& who, const Script& script, Words keys,
                                  Words args);
  /// Begins a hold. Null: the grant took too long to get here.
  std::shared_ptr<Hold> begin_granted(Identity&& who, const Grant& grant, SteadyTime renew_at);
  /// Begins the hold that was granted by the reply to a request sent at `since`. Throws Error
  /// (timeout), and gives the hold back, when the reply took as long as the lease.
  std::shared_ptr<Hold> begin_requested(Identity&& who, FencingToken token, SteadyTime since);

  /// Where this process hears of the lock.
  std::shared_ptr<Inbox> inbox() const { return common_->inboxes->of(key()); }
  std::string inbox_channel() const { return common_->inboxes->channel_of(key()); }
  bool is_inbox_open() const { return common_->inboxes->is_open(key()); }
  LockCommon& common() const noexcept { return *common_; }

 private:
  Task<AcquireReply> read(const Identity& who, Task<Value> asked);
  Task<AcquireReply> read_durably(const Identity& who, Task<DurableReply> asked);
  Task<std::shared_ptr<Hold>> enter_once(Identity who, SteadyTime until, std::stop_token stop);
  Task<std::shared_ptr<Hold>> wait_in_queue(std::shared_ptr<Inbox> inbox, Identity& who,
                                            SteadyTime until, std::stop_token stop);

  const std::shared_ptr<LockCommon> common_;
};

}  // namespace sluice::lock
