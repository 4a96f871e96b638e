/// The way into a lock: every acquire and lock() of Mutex, FairMutex and SharedMutex comes here.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "lock/hold/owner.hpp"
#include "lock/wait/lock_resource.hpp"

namespace sluice::lock {

/// Threads: any.
class Entrance {
 public:
  /// `label`: empty for the name of the program.
  Entrance(std::shared_ptr<LockResource> resource, std::string label);

  ~Entrance();
  Entrance(const Entrance&) = delete;
  Entrance& operator=(const Entrance&) = delete;

  LockResource& resource() const noexcept { return *resource_; }

  /// Enters a hold of the owner once more, if it has one; else gets a new one. `owner` may be null:
  /// a new owner. It stops waiting when the Task is dropped. `Granted`: Held, for a wait without an
  /// end, or std::optional<Held>.
  template <class Granted>
  Task<Granted> acquire(std::shared_ptr<OwnerState> owner, std::chrono::milliseconds wait,
                        std::stop_token stop);

  // For the standard library: the owner is the calling thread, by its number, as its id may come
  // again.
  void lock();
  bool lock_within(std::chrono::milliseconds wait);
  /// Releases the latest hold of this thread. Throws Error (bad_argument) when there is none.
  void unlock();

 private:
  struct ThreadHold {
    std::uint64_t thread;
    Held held;
  };
  void keep(Held held);

  const std::shared_ptr<LockResource> resource_;
  const std::string label_;
  const unsigned forks_ = fork_count();
  std::mutex mutex_;
  std::vector<ThreadHold> thread_holds_;  // of lock(), latest last
};

}  // namespace sluice::lock
