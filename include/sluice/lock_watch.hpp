/// All locks of a server that somebody holds or waits for, and the deadlocks among them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/lock_info.hpp"
#include "sluice/store.hpp"

namespace sluice {

enum class LockKind {
  mutex,      ///< Mutex; also MultiLock, a node of a QuorumLock, and a FairMutex nobody waits for.
  fair,       ///< FairMutex, or Redisson's RFairLock with somebody waiting.
  shared,     ///< SharedMutex, or Redisson's RReadWriteLock.
  semaphore,  ///< Semaphore.
  permits,    ///< PermitSemaphore.
  foreign,    ///< Held by a program that is not ours: Redisson's RLock, RFencedLock or RFairLock.
};

std::string_view to_string(LockKind kind) noexcept;

/// A lock with its holders and waiters. Of a semaphore the holders' `owner` is the request or the
/// permit, and `entries` are permits.
struct WatchedLock {
  std::string name;
  LockKind kind = LockKind::mutex;
  LockInfo info;
};

/// A holder or waiter: an Owner, a thread, or the owner that another program than ours names.
struct LockActor {
  std::string id;  ///< HOST:PID:t<thread> for a thread, else the owner's id
  HolderData data;

  friend bool operator==(const LockActor&, const LockActor&) = default;
};

/// Who holds what and who waits for what.
struct WaitGraph {
  struct Edge {
    std::size_t actor = 0;  ///< index into `actors`
    std::size_t lock = 0;   ///< index into `locks`
  };
  /// `parent` waits until `child` ends, as `sluice lock` waits for its command. Indexes into
  /// `actors`.
  struct ChildEdge {
    std::size_t parent = 0;
    std::size_t child = 0;
  };
  std::vector<LockActor> actors;
  std::vector<std::string> locks;
  std::vector<Edge> holds;
  std::vector<Edge> waits;
  std::vector<ChildEdge> children;
};

/// A cycle: each actor holds the lock that the actor before it waits for, and the first one the
/// lock that the last waits for.
struct Deadlock {
  struct Step {
    LockActor actor;
    std::string holds;
    std::string waits_for;
    std::optional<LockActor> child{};  ///< if not `actor` but its child process waits
    friend bool operator==(const Step&, const Step&) = default;
  };
  std::vector<Step> steps;

  friend bool operator==(const Deadlock&, const Deadlock&) = default;
};

/// Of locks, not of semaphores: a wait for permits ends when any holder gives some back, so that a
/// cycle through it proves nothing. O(holders + waiters).
WaitGraph wait_graph(const std::vector<WatchedLock>& locks);

/// Cycles that share no actor; none where there is no cycle. They are not the shortest ones.
/// O(found * (actors + locks + edges)).
std::vector<Deadlock> deadlocks_in(const WaitGraph& graph);

/// "a@host (pid 7, t9) holds L1 and waits for L2, held by b@...; ...: deadlock".
std::string to_string(const Deadlock& deadlock);
/// "label@host (pid 7, t9)", or the id where nothing else is known.
std::string to_string(const LockActor& actor);

/// A program that runs another one while it holds a lock, and waits for its end, puts
/// `ancestors_of_child()` under this name into the other's environment. Whatever the other waits
/// for, the holder then waits for too, and LockWatch sees it: see `WaitGraph::children`.
inline constexpr const char* ancestors_variable = "SLUICE_LOCK_ANCESTORS";
/// The calling thread, which must be the one that acquired, and its own ancestors.
std::string ancestors_of_child();

struct LockWatchOptions {
  /// Which names, as a glob of fnmatch(3): `*`, `?`, `[a-z]`.
  std::string pattern = "*";
  /// Only locks that somebody on this host holds or waits for. Empty: any.
  std::string host{};
  /// How many locks at most are shown. More takes more memory: some 500 bytes for each holder and
  /// waiter, and of these a lock has at most 1000.
  std::size_t most = 10'000;
  /// How many keys the server looks at in one step. More is faster; less delays other clients for a
  /// shorter time (1000: some 0.5 ms).
  std::size_t step = 1000;
  /// A cycle counts as a deadlock if it is still there after this time. Longer is surer; a waiter
  /// behind a holder of its own process is known to the server after two seconds.
  std::chrono::milliseconds second_look = std::chrono::seconds{2};
};

/// How far a search has come.
struct LockSearch {
  std::uint64_t looked_at = 0;  ///< keys, as far as is known
  std::uint64_t of = 0;
  std::size_t found = 0;  ///< locks
};

struct LockList {
  std::vector<WatchedLock> locks;  ///< by name
  bool complete = true;            ///< false: there are more than `most`
};

struct LockReport {
  WaitGraph graph;
  std::vector<Deadlock> deadlocks;
  bool complete = true;
};

/// Finds the locks of a server. It writes nothing, and stops nobody.
///
/// Guarantee: a lock that is held or waited for by a program of ours from the beginning to the end
///   of the search is found, if it is within the options. What is reported as a deadlock was one
///   for `second_look`, if each actor is an Owner or a thread of its own. The tests that hold it:
///   docs/lock_watch.md#guarantee.
/// Not guaranteed: one moment: locks are read one after another. Coroutines that share a thread and
///   have no Owner look like one actor, and a cycle through it may be none: give each an Owner.
///   That a deadlock lasts: a wait may have an end, and so has a hold that is not renewed. Locks on
///   other nodes of a cluster. Semaphores that only Java programs hold or wait for.
/// Threads: any. The Store must outlive the LockWatch, the LockWatch its Tasks.
/// In Redis: nothing. SCAN, twice through all keys, in short steps; O(keys of the server). Then
///   four to six commands for each lock, a hundred locks at a time. Needs Redis 6.
///
///     const auto found = LockWatch{*store}.list().get();
///     for (const auto& lock : found.locks) print(lock.name, lock.info.holders.size());
class LockWatch {
 public:
  using OnProgress = std::function<void(const LockSearch&)>;

  /// Throws Error (bad_argument): `most` or `step` is 0.
  explicit LockWatch(Store& store, LockWatchOptions options = {});

  /// All locks. `progress` is called after each step, by whichever thread goes on. Throws what the
  /// store throws; effect none.
  Task<LockList> list(OnProgress progress = {});

  /// One lock, by its name; the options do not matter. Empty: nobody holds it or waits for it. Two
  /// or three round trips.
  Task<std::optional<WatchedLock>> look(std::string name);

  /// The wait-for graph of all locks, and its deadlocks. If it has cycles, it looks again after
  /// `second_look`.
  Task<LockReport> report(OnProgress progress = {});

 private:
  Store& store_;
  const LockWatchOptions options_;
};

}  // namespace sluice
