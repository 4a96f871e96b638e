/// At most so many at a time, across processes.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "sluice/held.hpp"
#include "sluice/lock_info.hpp"
#include "sluice/store.hpp"

namespace sluice {

namespace lock {
class PermitQueue;
struct PermitNames;
}  // namespace lock

/// A semaphore as operators see it. It may have changed by the time it is read.
struct SemaphoreInfo {
  struct Holder {
    std::string id;  ///< of the request, or of the permit in the API of Redisson
    std::uint32_t permits = 0;
    std::chrono::milliseconds left{};  ///< of the lease; -1: no end
    HolderData data;                   ///< empty where a program other than ours holds
  };
  struct Waiter {
    std::uint32_t permits = 0;
    HolderData data;
  };
  std::int64_t free = 0;        ///< below 0: more are held than there are
  std::vector<Holder> holders;  ///< the one that ends next comes first; at most 1000
  std::vector<Waiter> waiters;  ///< of programs of ours, in the order of the queue; at most 1000
};

struct SemaphoreOptions {
  /// How long permits are held without renewal, and so how long those of a dead holder are missing;
  /// see MutexOptions. From 10 ms to 24 h.
  std::chrono::milliseconds lease = std::chrono::seconds{30};
  /// Renew the lease while permits are held. Off: they come back when their lease is over, and are
  /// then lost for their holder.
  bool watchdog = true;
  /// How much earlier than the server the holder believes the hold to be over. Default: lease / 100
  /// + 2 ms.
  std::optional<std::chrono::milliseconds> margin{};
  /// What people see in `info()`. Default: the name of the program.
  std::string label{};
};

/// How many permits there are: what Semaphore and PermitSemaphore have in common.
class SemaphoreBase {
 public:
  /// How many permits one hold may have, and how far one change may go.
  static constexpr std::uint32_t most = 2'147'483'647;

  SemaphoreBase(const SemaphoreBase&) = delete;
  SemaphoreBase& operator=(const SemaphoreBase&) = delete;

  /// Sets how many there are, unless the number is set already. True: set. Before that there are
  /// none. Throws Error; the same call again is safe.
  Task<bool> try_set_permits(std::uint32_t permits);
  /// The same, and throws Error (config_mismatch, effect none) when another number is in force: the
  /// free permits and those held by programs of ours. What a Java program acquired from an
  /// RSemaphore and what was drained is not in that number: use `try_set_permits` there. O(holds).
  Task<void> ensure_permits(std::uint32_t permits);
  /// So many more, or fewer: below zero, nobody gets one until as many came back.
  /// Throws Error (effect none or unknown).
  Task<void> add_permits(std::int64_t delta);
  /// How many are free, after those of dead holders came back.
  Task<std::int64_t> available();

  /// Who holds and who waits, for operators: one round trip.
  Task<SemaphoreInfo> info();

  const std::string& name() const noexcept;

 protected:
  SemaphoreBase(Store& store, lock::PermitNames&& names, SemaphoreOptions&& options);
  ~SemaphoreBase();

  Store& store_;
  const std::string label_;
  const std::shared_ptr<lock::PermitQueue> queue_;
};

/// A number of permits shared by every process that names it, Java processes with Redisson's
/// RSemaphore included.
///
/// Guarantee: permits are conserved: those free and those held are together what was set and added,
///   whatever message is lost, doubled or late, and whichever process dies. A hold that its process
///   does not renew comes back once, when its lease is over. Waiters of ours are served in the
///   order of their arrival: one that wants many is not overtaken by one that wants few. A process
///   that is dead or stands still delays those behind it by two seconds in all. The tests that hold
///   it: docs/semaphore.md#guarantee.
/// Not guaranteed: that a holder that was stopped notices before it acts (check `valid()`). That a
///   Java program waits in the same order: it takes whatever it finds free. Where one waits, what a
///   release gives back is left to it for 5 ms when each of ours that waits has had its turn. That
///   a Java program gets permits of a process of ours that died before another process of ours
///   calls. What a Java program acquires has no owner, and is missing when that program dies. A
///   copy of an acquire that the server executes only after the release holds permits that
///   no process uses until their lease is over.
/// Threads: any. The Store must outlive the Semaphore and every Held of it; a Held may outlive its
///   Semaphore. After a fork() the holds stay with the parent.
/// In Redis: string NAME, the free permits, and channel redisson_sc:{NAME}, both as Redisson's;
///   sorted sets sluice_semaphore_holds:{NAME}, sluice_semaphore_line:{NAME} and hash
///   sluice_semaphore_turns:{NAME} while somebody waits (2 minutes), strings
///   sluice_semaphore_done:{NAME}:ID for a minute after a change. One
///   round trip to acquire, one to release; a wait adds a round trip and a subscription that lasts
///   as long as the Semaphore. Renewals: one script for 100 holds. A key of another type or with
///   other text than a number is refused with wrong_type, and left as it is.
///
///     Semaphore desks{*store, "desks"};
///     desks.ensure_permits(4).get();
///     if (auto desk = desks.try_acquire(1, 5s).get()) work_at(*desk);
class Semaphore : public SemaphoreBase {
 public:
  /// Throws Error (bad_argument): a name that is empty, above 1 MiB or refused by
  /// docs/lock.md#names, a lease out of range, a margin that leaves nothing of it.
  explicit Semaphore(Store& store, std::string name, SemaphoreOptions options = {});

  /// Takes all that are free, for ever, and says how many. Throws Error (effect none or unknown).
  Task<std::int64_t> drain();

  /// Waits until so many are held, from 1 to `most`. `Held::token()` is 0: permits have no order.
  /// Throws Error (connection, timeout, wrong_type ...): a hold that may have come about all the
  /// same is taken back in the background, and ends with its lease at the latest.
  Task<Held> acquire(std::uint32_t permits = 1);
  /// Waits up to `wait`, or until `stop` is requested; without a wait: one round trip, and refused
  /// while others wait. Empty: refused. Throws as `acquire`.
  Task<std::optional<Held>> try_acquire(std::uint32_t permits = 1,
                                        std::chrono::milliseconds wait = {},
                                        std::stop_token stop = {});

  /// Gives back permits that no Held stands for: those of a Java program, or drained ones. As
  /// Redisson it does not ask whether anybody had them. `request`: a name for this release of at
  /// most 200 bytes. A caller that gets an Error of unknown effect, and calls again with the same
  /// name within a minute, releases once. Default: each call is new.
  /// Throws Error (effect none or unknown).
  Task<void> release_unowned(std::uint32_t permits = 1, std::string request = {});
};

}  // namespace sluice
