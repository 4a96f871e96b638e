/// One at a time, across processes, in the order of arrival.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "sluice/held.hpp"
#include "sluice/store.hpp"

namespace sluice {

namespace lock {
class FairQueue;
struct OwnerState;
class ThreadHolds;
}  // namespace lock

struct FairMutexOptions {
  /// How long a hold lasts without renewal, and so how long a dead holder keeps others out. Shorter
  /// frees sooner; longer survives longer pauses of the holder and outages of the server. From 10
  /// ms to 24 h.
  std::chrono::milliseconds lease = std::chrono::seconds{30};
  /// Renew the lease while it is held, every third of it, all holds of the process together. Off:
  /// every hold ends when its lease does, and is then lost.
  bool watchdog = true;
  /// How much earlier than the server the holder believes the hold to be over: for clocks that run
  /// at different speeds. More is safer, and leaves less of the lease. Default: lease / 100 + 2 ms,
  /// as in Redlock.
  std::optional<std::chrono::milliseconds> margin{};
  /// Where a grant has to be before it counts. Default: on the server.
  Durability durability{};
  /// What people see in `info()` and `sluice locks`. Default: the name of the program.
  std::string label{};
};

/// A mutual-exclusion lock shared by every process that names it, first come first served; Java
/// processes with Redisson's RFairLock included.
///
/// Guarantee: what Mutex guarantees; and whoever waits gets in before all who came later, of
///   whatever process, while it lives. Nobody gets past a waiter: an acquire that does not wait is
///   refused while anybody does. A release gives the lock to the first that waits, and tells its
///   process alone. A waiter of ours stays in the queue for as long as it waits. One that is dead
///   or stands still costs those behind it two seconds, when its turn comes.
/// Not guaranteed: that a holder that was stopped notices before it acts (check `valid()`, pass on
///   `token()`); that an asynchronous replica knows of the hold or the queue after a failover; a
///   place in the queue for a waiter that stood still when its turn came: it goes to the end; the
///   two seconds when the two processes that are to look after it stand still too (30 then). What a
///   Java program can do to the order: it takes the first of the queue to be dead by its own clock,
///   after 5 minutes and more without news, so that a clock that is so much ahead lets it in before
///   ours, which return to the front with their next look, within 30 seconds; each of its own
///   waiters is dropped when it has waited so long. Losses are counted in `sluice_lock_lost_total`.
/// Threads: any. The Store must outlive the FairMutex and every Held of it; a Held may outlive its
///   FairMutex. After a fork() the holds stay with the parent.
/// In Redis: as Redisson's, hash NAME {owner: entries}, TTL = lease; list
///   redisson_lock_queue:{NAME} of those who wait, and sorted set redisson_lock_timeout:{NAME} of
///   their deadlines, by the server's clock; channels redisson_lock__channel:{NAME}:OWNER.
///   Ours beside it: fields sluice:... of the hash; hash sluice_lock_tickets:{NAME}, TTL 2 minutes;
///   string redisson_lock_token:{NAME}, the fencing counter, which stays. One name is a Mutex or a
///   FairMutex, not both. One round trip to acquire a free lock, one to release it; a waiter spends
///   one more to stand in the queue, and then one in 30 seconds, or when the lease in its way ends.
///   Behind a Java program it subscribes to a channel of its own, and looks up to twice a second.
/// Complexity: with n waiters O(n) on the server for each that enters the queue, looks, or leaves
///   it, as with Redisson, which moves the deadlines of all behind: some 0.3 ms for 500.
///
///     FairMutex mutex{*store, "printer"};
///     auto held = mutex.acquire().get();
class FairMutex {
 public:
  /// Throws Error (bad_argument): an empty name, one above 1 MiB, a lease out of range, a margin
  /// that leaves nothing of it.
  FairMutex(Store& store, std::string name, FairMutexOptions options = {});
  ~FairMutex();
  FairMutex(const FairMutex&) = delete;
  FairMutex& operator=(const FairMutex&) = delete;

  /// Waits until it is held. Throws Error (connection, timeout, wrong_type ...): a hold or a place
  /// in the queue that may have come about all the same is taken back in the background; the hold
  /// ends with its lease at the latest.
  Task<Held> acquire();
  /// The same; an owner that is in enters once more. A second wait of an owner that waits already
  /// is that of somebody new: it stands behind the first, and `Held::owner()` says who it is.
  Task<Held> acquire(const Owner& owner);

  /// Waits up to `wait`, or until `stop` is requested, and leaves the queue then. Empty: it was
  /// others' turn all the while. Without a wait: one round trip, without a place in the queue.
  /// Throws as `acquire`.
  Task<std::optional<Held>> try_acquire(std::chrono::milliseconds wait = {},
                                        std::stop_token stop = {});
  Task<std::optional<Held>> try_acquire(const Owner& owner, std::chrono::milliseconds wait = {},
                                        std::stop_token stop = {});

  /// Who is in, and the first 1000 who wait, in their order, for operators: one round trip.
  Task<LockInfo> info();

  /// Ends whoever's hold, and gives the lock to the first that waits. The holder learns of it with
  /// its next renewal; at once if it is the last that this FairMutex let in. False: nobody was in.
  Task<bool> force_release();

  const std::string& name() const noexcept;

  // As the standard library wants it (TimedLockable): the owner is the thread. Entering again is
  // allowed, as with std::recursive_mutex. `lock` and `try_lock...` throw Error when the store
  // fails. `unlock` releases as ~Held does; it throws Error (bad_argument) when this thread is not
  // in, but not when the hold was lost, which is logged and counted.
  void lock();
  bool try_lock();
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return lock_within(std::chrono::ceil<std::chrono::milliseconds>(wait));
  }
  template <class AnyClock, class Duration>
  bool try_lock_until(const std::chrono::time_point<AnyClock, Duration>& when) {
    if constexpr (std::is_same_v<AnyClock, std::chrono::steady_clock>) {
      return try_lock_for(when - store_.clock().steady());
    } else {
      return try_lock_for(when - AnyClock::now());  // the caller's clock, not ours
    }
  }
  void unlock();

 private:
  Task<std::optional<Held>> enter(std::shared_ptr<lock::OwnerState> owner,
                                  std::chrono::milliseconds wait, std::stop_token stop);
  bool lock_within(std::chrono::milliseconds wait);

  Store& store_;
  const std::string label_;
  const std::shared_ptr<lock::FairQueue> queue_;
  const std::unique_ptr<lock::ThreadHolds> threads_;  // of lock()
};

}  // namespace sluice
