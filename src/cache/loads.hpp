/// The bulkhead: loads of one guard run on threads of its own, so many at once and no more.
///
/// A thread is started for a load that finds none idle. One that finds nothing more to do ends, but
/// for one, which waits for the next load.
///
/// A load that asks the same guard for another key, itself or by the load of another guard, blocks
/// its thread, and does not load meanwhile: loads that it needs may have as many threads more.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/cache_guard.hpp"

namespace sluice::cache {

using Object = detail::CacheObject;
using Loader = detail::CacheCore::Loader;
using BulkLoader = detail::CacheCore::BulkLoader;

struct Loaded : detail::CacheCore::Loaded {
  std::exception_ptr error;         ///< what the loader has thrown
  std::chrono::nanoseconds took{};  ///< by the Clock
  bool began = true;                ///< false: `begin_before` had passed when its turn came
};

/// What callers of a guard that has ended are told.
Error closed_guard();

/// Threads: any.
class Loads {
 public:
  Loads(Store& store, std::size_t most, std::size_t most_waiting);
  /// REQUIRES: close() has returned.
  ~Loads() = default;
  Loads(const Loads&) = delete;
  Loads& operator=(const Loads&) = delete;

  /// A load, and the one that needs it, perhaps of another guard.
  struct Link {
    Store& store;
    const void* loads;  // whose load it is
    std::vector<std::string> keys;
    std::shared_ptr<const Link> needed_by;
    std::atomic<bool> runs{true};
  };
  using Need = std::shared_ptr<const Link>;
  /// The load, of any guard, that this thread runs; null: none.
  static Need current() { return running_; }
  /// Whether this thread loads `key` by a guard of this Store, or what such a load needs.
  bool is_loading(std::string_view key) const noexcept;

  /// Runs `loader` for `keys` when there is room. `need`: the current() of the caller. Throws
  /// Error: overloaded, closed, out_of_space (no thread could be started).
  Task<Loaded> run(std::vector<std::string> keys, Loader loader, Need need,
                   SteadyTime begin_before);

  /// Waits for the loads that run, unless it is called by one of them; those that wait for their
  /// turn end with Error (closed).
  void close();

 private:
  struct Turn {
    Loader loader;
    std::shared_ptr<Link> link;
    bool nested = false;  // a thread of this guard waits for it
    SteadyTime begin_before;
    Loaded loaded;
    Completion done;
  };
  struct State {
    explicit State(Clock& of) : clock(of) {}

    Clock& clock;
    std::mutex mutex;
    std::condition_variable called;
    std::condition_variable ended;
    std::deque<std::shared_ptr<Turn>> waiting;
    std::size_t threads = 0;
    std::size_t busy = 0;
    bool is_one_idle = false;
    std::size_t nested = 0;  // loads under way that others wait for in their threads
    bool closed = false;
  };
  static void work(const std::shared_ptr<State>& state);
  static void load(State& state, Turn& turn);
  void enter(const std::shared_ptr<Turn>& turn);
  bool is_needed_here(const Link& link) const noexcept;

  inline static thread_local const State* mine_ = nullptr;  // whose thread this is
  inline static thread_local Need running_;

  Store& store_;
  const std::size_t most_;
  const std::size_t most_waiting_;
  const std::shared_ptr<State> state_;
};

}  // namespace sluice::cache
