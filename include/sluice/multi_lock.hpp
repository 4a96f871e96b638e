/// Several locks, all of them or none.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/held.hpp"
#include "sluice/store.hpp"

namespace sluice {

namespace lock {
class Group;
class MultiHold;
}  // namespace lock

/// One of the locks, where they are of several Stores.
struct MultiName {
  Store& store;
  std::string name;
};

struct MultiLockOptions {
  /// How long a hold lasts without renewal; see MutexOptions. From 10 ms to 24 h. Without the
  /// watchdog it has to outlast the wait for the names of the other scripts.
  std::chrono::milliseconds lease = std::chrono::seconds{30};
  /// Renew the leases while they are held.
  bool watchdog = true;
  /// How much earlier than the server the holder believes the holds to be over. Default: lease /
  /// 100 + 2 ms.
  std::optional<std::chrono::milliseconds> margin{};
  /// One script takes names of one hash slot only, as a Redis Cluster demands; names of several
  /// slots are taken one slot after the other. Off: one script takes all names of a Store, unless
  /// that is a cluster. Programs that set it differently exclude each other, and do not deadlock.
  bool slot_by_slot = false;
  /// How many replicas must have a grant, of each server that is asked; see MutexOptions.
  Durability durability{};
  /// What people see in `Mutex::info()` and `sluice locks`. Default: the name of the program.
  std::string label{};
};

/// A hold of every name of a MultiLock. Its end releases all.
///
/// Threads: one at a time, but for `valid`, `valid_for`, `tokens`, `token`, `owner` and `lost`,
///   which any may call.
class [[nodiscard("the holds end with this object: keep it for as long as you work")]] MultiHeld {
 public:
  struct Token {
    std::string name;
    FencingToken token;
    friend bool operator==(const Token&, const Token&) = default;
  };

  /// Holds nothing.
  MultiHeld() noexcept;
  MultiHeld(MultiHeld && other) noexcept;
  MultiHeld& operator=(MultiHeld&& other) noexcept;
  /// Releases all as ~Held does: sent at once, the reply not waited for, never throws.
  ~MultiHeld();

  /// Whether the hold of every name is certain at this moment: no I/O, O(names). Once false, false
  /// for ever.
  bool valid() const noexcept;
  /// How long all stay certain if no renewal succeeds; 0 when one is not.
  std::chrono::nanoseconds valid_for() const noexcept;
  explicit operator bool() const noexcept { return valid(); }

  /// The fencing token of each name, in the order in which the names were given. Empty when this
  /// holds nothing.
  std::vector<Token> tokens() const;
  /// That of one name, of the first where several Stores have it; 0: not one of the names.
  FencingToken token(std::string_view name) const noexcept;
  OwnerId owner() const;

  /// Leaves all and waits for the servers to say so: one script for each that took them.
  /// `released`: all were held until now. `not_held`: at least one was lost before; the others are
  /// released all the same. Afterwards this holds nothing; a second call is answered `not_held`.
  /// Throws Error (effect none or unknown), after all were tried; what was not released ends with
  /// its lease.
  Task<ReleaseOutcome> release();

  /// Stops when the first hold is lost; never after the release. The others are renewed on until
  /// they are released.
  std::stop_token lost() const;
  /// Calls `callback` once, with the cause of the first loss; as Held::on_lost.
  void on_lost(std::function<void(LostCause)> callback);
  /// Calls `callback` each time one of the holds comes to be at risk; as Held::on_risk.
  void on_risk(std::function<void(Risk)> callback);

 private:
  friend class MultiLock;
  explicit MultiHeld(std::unique_ptr<lock::MultiHold> holding) noexcept;

  bool is_ours() const noexcept;

  std::unique_ptr<lock::MultiHold> holding_;
};

/// Several names, taken all or not at all: the two accounts of a transfer, the shelves of an order.
///
/// Guarantee: for each name as for Mutex; it excludes a Mutex of that name, and Redisson's. A
///   caller that is refused holds none of the names. There is no deadlock among MultiLocks: a
///   waiter holds only names before the one it waits for, in an order that is the same for all
///   programs (by server address, hash slot, name). A wait ends: each name is waited for at most
///   twice, in its queue, behind the waiters that were there before. The tests that hold it:
///   docs/multi_lock.md#guarantee.
/// Not guaranteed: that nothing is held while waiting. The first attempt takes all or none, and
///   waits for the first name that another holds, without holding any. If it is refused again, it
///   keeps the names before the next one that another holds, so that the wait ends. An order of
///   several Stores when programs write the address of one server differently: use the same URL.
///   Entering again: every acquire has a new owner, and would wait for itself.
/// Threads: any. The Stores must outlive the lock and every MultiHeld of it.
/// In Redis: for each name what Mutex leaves. One round trip to acquire free names of one Store,
///   one to release them, whatever their number; a wait adds one script for each name that turns
///   out to be held. Names of several Stores, or of several slots with `slot_by_slot`: one after
///   another. Renewals travel with those of all locks of the process.
///
///     MultiLock both{*store, {"account:7", "account:42"}};
///     if (auto held = both.try_acquire(5s).get()) transfer(held->tokens());
class MultiLock {
 public:
  static constexpr std::size_t most_names = 1000;

  /// Throws Error (bad_argument): no name, more than `most_names`, one that is empty, above 1 MiB
  /// or given twice; a lease out of range, a margin that leaves nothing of it.
  MultiLock(Store& store, const std::vector<std::string>& names, MultiLockOptions options = {});
  explicit MultiLock(std::vector<MultiName> names, MultiLockOptions options = {});
  ~MultiLock();
  MultiLock(const MultiLock&) = delete;
  MultiLock& operator=(const MultiLock&) = delete;

  /// Waits until all are held. Throws Error (connection, timeout, wrong_type ...): what may have
  /// come about all the same is taken back in the background, and ends with its lease at the
  /// latest.
  Task<MultiHeld> acquire();
  /// Waits up to `wait`, or until `stop` is requested. Empty: others held some of them; none is
  /// held now. Without a wait: one round trip for each script. Throws as `acquire`.
  Task<std::optional<MultiHeld>> try_acquire(std::chrono::milliseconds wait = {},
                                             std::stop_token stop = {});

 private:
  class Core;

  const std::shared_ptr<Core> core_;  // an acquire under way has it too
};

}  // namespace sluice
