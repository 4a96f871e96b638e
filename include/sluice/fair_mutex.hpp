/// One at a time, across processes, in the order of arrival.
#pragma once

#include <optional>
#include <string>

#include "sluice/exclusive_lock.hpp"

namespace sluice {

struct FairMutexOptions {
  // As in MutexOptions.
  std::chrono::milliseconds lease = std::chrono::seconds{30};
  bool watchdog = true;
  std::optional<std::chrono::milliseconds> margin{};
  Durability durability{};
  std::string label{};
};

/// A mutual-exclusion lock shared by every process that names it, first come first served; Java
/// processes with Redisson's RFairLock included.
///
/// Guarantee: what Mutex guarantees; and a waiter gets in before all waiters that came later, of
///   whatever process, while it lives. No caller gets past a waiter: an acquire that does not wait
///   is refused while there is one. A release gives the lock to the first that waits, and tells its
///   process alone. A waiter of ours stays in the queue for as long as it waits. A process that is
///   dead or stands still costs those behind it two seconds in all, however many waiters it has.
///   The tests that hold it: docs/fair_mutex.md#guarantee.
/// Not guaranteed: that a holder that was stopped notices before it acts (check `valid()`, pass on
///   `token()`); that an asynchronous replica knows of the hold or the queue after a failover; a
///   place in the queue for the waiters of a process that stood still for seconds: they go to the
///   end. What a
///   Java program can do to the order: it takes the first of the queue to be dead by its own clock,
///   after 5 minutes and more without news, so that a clock that is so much ahead lets it in before
///   ours, which return to the front with their next look; each of its own
///   waiters is dropped when it has waited so long. Losses are counted in `sluice_lock_lost_total`.
/// Owners: a second wait of an owner that waits already stands behind the first, under an owner id
///   of its own (`Held::owner()`). A caller whose wait ends, or is stopped, leaves the queue.
/// Threads: any. The Store must outlive the FairMutex and every Held of it; a Held may outlive its
///   FairMutex. After a fork() the holds stay with the parent.
/// In Redis: as Redisson's, hash NAME {owner: entries}, TTL = lease; list
///   redisson_lock_queue:{NAME} of the waiters, and sorted set redisson_lock_timeout:{NAME} of
///   their deadlines, by the server's clock; channels redisson_lock__channel:{NAME}:OWNER.
///   Ours beside it: fields sluice:... of the hash; hash sluice_lock_tickets:{NAME}; string
///   redisson_lock_token:{NAME}, the fencing counter, TTL 25 h. The queue, the deadlines and the
///   tickets end together, a minute after the last look of a waiter; while Java programs wait too,
///   five minutes after the last deadline. One name is a Mutex or a FairMutex, not both. One round
///   trip to acquire a free lock, one to release it; a waiter spends one more to stand in the
///   queue. The first waiter of a process looks about once a second, more seldom the more processes
///   are before it; the others look when it is gone, or after 30 seconds. Behind a Java program it
///   subscribes to a channel of its own, and looks up to twice a second.
/// Complexity: with n waiters O(n) on the server for each that enters the queue, looks, or leaves
///   it, as with Redisson, which moves the deadlines of all behind: some 0.3 ms for 500.
///
///     FairMutex mutex{*store, "printer"};
///     auto held = mutex.acquire().get();
class FairMutex : public ExclusiveLock {
 public:
  /// Throws Error (bad_argument): a name that is empty, above 1 MiB or refused by
  /// docs/lock.md#names, a lease out of range, a margin that leaves nothing of it.
  FairMutex(Store& store, std::string name, FairMutexOptions options = {});
};

}  // namespace sluice
