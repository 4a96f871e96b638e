/// One at a time, by the word of a majority of independent servers.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "sluice/held.hpp"
#include "sluice/store.hpp"

namespace sluice {

struct QuorumLockOptions {
  /// How long a hold lasts without renewal; see MutexOptions. From 10 ms to 24 h.
  std::chrono::milliseconds lease = std::chrono::seconds{30};
  /// Renew the hold at all nodes, every quarter of the lease.
  bool watchdog = true;
  /// For clocks that run at different speeds: the drift of Redlock. Default: lease / 100 + 2 ms.
  std::optional<std::chrono::milliseconds> margin{};
  /// How long one node is waited for. Less fails sooner when nodes are down; more waits for slow
  /// nodes. It is below the lease. Default: a fiftieth of the lease, from 10 ms (a lease below 20
  /// ms: half of it) to 500 ms.
  std::optional<std::chrono::milliseconds> node_timeout{};
  /// Tokens rise from hold to hold whichever majority granted. It costs a round trip more when the
  /// nodes' counters have come apart: after two asked at once, or a node was away. Off: a token may
  /// be smaller than that of an earlier hold.
  bool fenced = true;
  /// A waiter that hears of no release asks again after a random pause, at first of `first_pause`,
  /// then of twice as much each time up to `longest_pause`. Less finds an unheard release sooner;
  /// more asks less.
  std::chrono::milliseconds first_pause{10};
  std::chrono::milliseconds longest_pause{500};
  /// What people see in `Mutex::info()` of a node. Default: the name of the program.
  std::string label{};
};

namespace lock {
class QuorumCore;
}  // namespace lock

/// A lock that outlives the death of a minority of its servers: Redlock (antirez, 2014), with
/// renewal, healing and tokens that rise.
///
/// The nodes know nothing of each other: five servers on five machines, no replicas of one another.
/// One node makes it a slower Mutex; an even number survives no more failures than one less.
///
/// Guarantee: among holders whose `Held::valid()` is true there is at most one, while all clocks
///   run at the same speed within the margin, and while not too many nodes forget a hold before its
///   time, by losing their data or by a clock that is set forward: a hold that all five have
///   survives two of these, a hold that three have survives none. The hold is certain for the
///   lease, less the time of the asking and the margin. A node that did not grant, or came back
///   empty, takes the hold up with the next renewal (the first comes soon where a node did not
///   grant), and counts from then on. With `fenced` tokens rise from hold to hold under the same
///   conditions, and after data was lost too where wall clocks do not go back. The tests that hold
///   it: docs/quorum_lock.md#guarantee.
/// Not guaranteed: exclusion when more nodes forget than the hold can spare. Have them keep their
///   data (appendonly, fsync always), or keep down for a lease one that has lost it. That a holder
///   that was stopped notices before it acts: pass on the token. An order of waiters. That a
///   renewal which a node executes only after the release leaves nothing: it leaves a hold there,
///   without a holder, until its lease ends.
/// Threads: any. The Stores must outlive the lock, every Held of it, and the calls under way. After
///   a fork() the holds stay with the parent.
/// In Redis: at each node what Mutex leaves, under the same names; a holder of that Mutex at one
///   node has that node's vote. To acquire: one round trip to all at once, done with the first
///   majority; the same to release. Waiting: a subscription at each node, and one round of
///   questions for each release heard or pause. Renewal: one script for 100 holds and node.
///
///     QuorumLock lock{{a.get(), b.get(), c.get()}, "leader"};
///     if (auto held = lock.try_acquire(5s).get()) lead(held->token());
class QuorumLock {
 public:
  static constexpr std::size_t most_nodes = 99;

  /// Throws Error (bad_argument): no node, more than `most_nodes`, one that is null or given twice;
  /// a name or lease as for Mutex; a node_timeout or pause out of range.
  QuorumLock(std::vector<Store*> nodes, std::string name, QuorumLockOptions options = {});
  ~QuorumLock();
  QuorumLock(const QuorumLock&) = delete;
  QuorumLock& operator=(const QuorumLock&) = delete;

  const std::string& name() const noexcept;

  /// Waits until it is held. Throws Error when fewer than a majority of the nodes answer, naming
  /// each and what is known of it; `errc` is that of all that failed if they agree, else
  /// connection; timeout if none failed. What a minority has granted is released before, for which
  /// those nodes are waited for as long as for any answer; what a node grants later, in the
  /// background: it ends with its lease at the latest. Also (timeout): the grant took as long as
  /// its lease.
  Task<Held> acquire();
  /// Waits up to `wait`, or until `stop` is requested. Empty: another held it all the while, or
  /// several callers each got some of the nodes. Without a wait: one round of questions.
  /// Blocks at most twice `node_timeout` longer (three times with `fenced`). Throws as `acquire`.
  Task<std::optional<Held>> try_acquire(std::chrono::milliseconds wait = {},
                                        std::stop_token stop = {});

 private:
  const std::shared_ptr<lock::QuorumCore> core_;  // an acquire under way has it too
};

}  // namespace sluice
