/// Many readers, or one writer, across processes.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "sluice/exclusive_lock.hpp"

namespace sluice {

namespace lock {
class Entrance;
}  // namespace lock

struct SharedMutexOptions {
  // As in MutexOptions.
  std::chrono::milliseconds lease = std::chrono::seconds{30};
  bool watchdog = true;
  std::optional<std::chrono::milliseconds> margin{};
  Durability durability{};
  enum class Preference {
    writers,  ///< While a writer waits, newcomers wait behind it; after it, the next writer is
              ///< next.
    readers,  ///< Newcomers join those that read; after a writer, those that wait to read are next.
  };
  /// Who goes first. Readers first gives more throughput where most read; writers first gives
  /// fresher reads.
  Preference preference = Preference::writers;
  /// How many may go past those that wait for the other kind of hold: so many writers past readers
  /// that wait (one at least), or so many newcomers past a writer that waits. Then it is their
  /// turn: of all readers together, or of one writer. 0: always turn about (phase-fair). At most
  /// 1'000'000.
  std::uint32_t overtaking = 16;
  /// After so many hand-overs in a row from hold to hold of ours, a release makes the lock truly
  /// free and publishes it, if a program that is not ours listens, in Java, say. From 1 to
  /// 1'000'000.
  std::uint32_t hand_overs = 16;
  /// What people see in `info()` and `sluice locks`. Default: the name of the program.
  std::string label{};
};

/// A lock that many may hold to read or one to write, shared by every process that names it, Java
/// processes with Redisson included.
///
/// Guarantee: among holders whose `Held::valid()` is true there is at most one that writes, and
///   then only its own owner reads; while the server keeps its data and its clock and ours run at
///   the same speed within the margin. A lost reply leaves no second hold, a repeated or late
///   release touches no newer hold. A reader that died keeps a writer out for its lease at most,
///   however long other readers go on. Neither readers nor writers of ours starve: see
///   `SharedMutexOptions::overtaking`. Processes that stop or die, holds that end from outside, and
///   `Durability`: as with Mutex. The tests that hold it: docs/shared_mutex.md#guarantee.
/// Not guaranteed: that a holder that was stopped notices before it acts (check `valid()`, pass on
///   `token()`); that an asynchronous replica knows of the hold after a failover; an order among
///   those that wait for the same kind of hold in different processes; that Java readers wait for
///   a writer of ours that waits: Redisson knows no queue here. Losses are counted in
///   `sluice_lock_lost_total`.
/// Entering again: an Owner may enter again what it is in. One that writes may also read, and goes
///   on reading when it ends its write hold: all that wait to read then join it. The server keeps
///   the lock for as long as the longer of the two holds lasts. One that reads may
///   not also write: Error (bad_argument), at once. What an owner enters again has one token; a
///   hold that it acquires after it lost one has a higher one, also where the server knows the old
///   one.
/// Threads: any. The Store must outlive the SharedMutex and every Held of it; a Held may outlive
///   its SharedMutex. After a fork() the holds stay with the parent.
/// In Redis: hash NAME {mode, owner: entries, owner:write: entries, sluice:...}, TTL = the longest
///   lease; for each entry of a reader the string {NAME}:OWNER:rwlock_timeout:N, TTL = its lease,
///   renewed for N = 1; string redisson_lock_token:{NAME}, the fencing counter, TTL 25 h; channel
///   redisson_rwlock:{NAME}; sorted sets sluice_rw_write_line:{NAME}, sluice_rw_read_line:{NAME}
///   and hash sluice_rw_looks:{NAME} while there are waiters, TTL 1 min. One round trip to enter a
///   lock that is free, one to release, which also lets the next waiters in: they need none.
///   Renewals: one script for 100 holds to read, one for 100 to write.
///
///     SharedMutex prices{*store, "prices"};
///     { const std::shared_lock reading{prices}; show(price_list); }
///     { const std::unique_lock writing{prices}; price_list = load(); }
class SharedMutex : public ExclusiveLock {
 public:
  /// Throws Error (bad_argument): a name that is empty, above 1 MiB or refused by
  /// docs/lock.md#names, an option out of its range.
  SharedMutex(Store& store, std::string name, SharedMutexOptions options = {});
  ~SharedMutex();

  // To write: the verbs of ExclusiveLock. An `acquire` of an owner that reads and does not write
  // throws Error (bad_argument, effect none).

  /// To read, as `acquire`. `Held::token()` of a reader is above that of every writer before it,
  /// and later writers exceed it: a fence that readers ask too refuses a writer that slept. Readers
  /// that are in together share one. Who reads beside an owner that wrote and goes on reading has
  /// that owner's token: such a fence knows them for one.
  Task<Held> acquire_shared();
  Task<Held> acquire_shared(const Owner& owner);
  Task<std::optional<Held>> try_acquire_shared(std::chrono::milliseconds wait = {},
                                               std::stop_token stop = {});
  Task<std::optional<Held>> try_acquire_shared(const Owner& owner,
                                               std::chrono::milliseconds wait = {},
                                               std::stop_token stop = {});

  // To read, as the standard library wants it (SharedTimedMutex). lock_shared() is also allowed
  // between lock() and unlock(); lock() of a thread that reads throws Error.
  void lock_shared();
  bool try_lock_shared();
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) {
    return lock_shared_within(whole_ms(wait));
  }
  template <class AnyClock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<AnyClock, Duration>& when) {
    return lock_shared_within(time_until(when));
  }
  void unlock_shared();

 private:
  bool lock_shared_within(std::chrono::milliseconds wait);

  const std::unique_ptr<lock::Entrance> readers_;
};

}  // namespace sluice
