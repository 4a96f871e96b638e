/// One at a time, across processes.
#pragma once

#include <optional>
#include <string>

#include "sluice/exclusive_lock.hpp"

namespace sluice {

/// How a released lock goes from hand to hand. The waiters of one process queue in it, and have its
/// turn together.
struct HandOff {
  /// At most so many hand-offs from one waiter of a process to the next, without the server, before
  /// a process that waits has its turn. More is faster, less is fairer between processes. From 1 to
  /// 100000. A turn takes this many tokens.
  std::uint32_t within_process = 64;
  /// ... and at most for so long, then also.
  std::chrono::milliseconds turn{100};
  /// After so many hand-overs in a row from process to process of ours, and earlier where fewer of
  /// them wait, a release leaves the lock to programs that are not ours, in Java, say, for 5 ms; if
  /// any of them waits.
  std::uint32_t across_processes = 16;

  friend auto operator<=>(const HandOff&, const HandOff&) = default;
};

struct MutexOptions {
  /// How long a hold lasts without renewal, and so how long a dead holder keeps others out. Shorter
  /// frees sooner; longer survives longer pauses of the holder and outages of the server. From 10
  /// ms to 24 h.
  std::chrono::milliseconds lease = std::chrono::seconds{30};
  /// Renew the lease while it is held, every quarter of it, all holds of the process together. Off:
  /// every hold ends when its lease does, and is then lost.
  bool watchdog = true;
  /// How much earlier than the server the holder believes the hold to be over: for clocks that run
  /// at different speeds. More is safer, and leaves less of the lease. Default: lease / 100 + 2 ms,
  /// as in Redlock.
  std::optional<std::chrono::milliseconds> margin{};
  /// Where a grant has to be before it counts. Default: on the server.
  Durability durability{};
  HandOff hand_off{};
  /// What people see in `info()` and `sluice locks`. Default: the name of the program.
  std::string label{};
};

/// A mutual-exclusion lock shared by every process that names it, Java processes with Redisson
/// included.
///
/// Guarantee: among holders whose `Held::valid()` is true there is at most one, while the server
///   keeps its data and its clock and ours run at the same speed within the margin. A lost reply
///   leaves no second hold, a repeated or late release touches no newer hold, and a hold is never
///   renewed after its release. Tokens rise, also after the server has lost some of its data, or
///   all. With `Durability`, every hold that is valid() is known to so many replicas, and so is
///   each renewal that counts. A waiter gets the lock by the release itself. A process that stopped
///   or died costs those behind it two seconds in all, however many waiters it has. A hold that
///   ends from outside (deleted, forced open, flushed) is noticed by all waiters within two
///   seconds. Within a process waiters have their turns in the order of their arrival. The tests
///   that hold it: docs/lock.md#guarantee.
/// Not guaranteed: that a holder that was stopped notices before it acts (check `valid()`, pass on
///   `token()`); that an asynchronous replica knows of the hold after a failover without
///   `Durability`; an order among processes (see FairMutex), nor the place of a process that
///   stands still for 2 s when its turn comes. That a hold which was ended from outside
///   (force_release, DEL) is not passed on among the callers of its process until the next renewal
///   notices: their token is that of before, which a Fence refuses. A copy of an acquire that the
///   server gets to only after the hold was released again (the first connection was lost while the
///   copy lay in a buffer) leaves a hold without a holder until its lease ends. Losses are counted
///   in `sluice_lock_lost_total`.
/// Threads: any. The Store must outlive the Mutex and every Held of it; a Held may outlive its
///   Mutex. After a fork() the holds stay with the parent: in the child they are not valid, their
///   end releases nothing, and each verb throws Error (closed) at once.
/// In Redis: hash NAME {owner: entries, sluice:...: ours}, TTL = lease; string
///   redisson_lock_token:{NAME}, the fencing counter, TTL 25 h; while processes wait the list
///   sluice_lock_queue:{NAME} of them and the hash sluice_lock_looks:{NAME}, TTL 1 min; channel
///   redisson_lock__channel:{NAME}; a channel for each process, sluice:inbox:ID; for a minute after
///   a force_release the string sluice_lock_forced:{NAME}:ID, its answer. One round trip to
///   acquire a free lock, one to release it, however many wait; none to hand it on within the
///   process. Renewals: one script for 100 holds. Follows lock cohorting (Dice, Marathe, Shavit,
///   PPoPP 2012) and Redisson's RLock; see docs/lock.md.
///
///     Mutex mutex{*store, "stock:42"};
///     if (auto held = mutex.try_acquire(5s).get()) sell(held->token());
class Mutex : public ExclusiveLock {
 public:
  /// Throws Error (bad_argument): a name that is empty, above 1 MiB or refused by
  /// docs/lock.md#names, a lease out of range, a margin that leaves nothing of it.
  Mutex(Store& store, std::string name, MutexOptions options = {});
};

}  // namespace sluice
