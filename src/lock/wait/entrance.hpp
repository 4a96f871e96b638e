/// The way into a lock: every acquire and lock() of Mutex, FairMutex and SharedMutex comes here.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>

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
  struct ThreadHolds;
  ThreadHolds& thread_holds();
  void keep(Held held);

  const std::shared_ptr<LockResource> resource_;
  const std::string label_;
  std::atomic<ThreadHolds*> thread_holds_ = nullptr;  // none before the first lock()
};

}  // namespace sluice::lock
