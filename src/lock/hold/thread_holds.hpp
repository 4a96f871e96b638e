/// The holds of lock() and unlock(), whose owner is the thread.
#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/held.hpp"

namespace sluice::lock {

/// Who this thread is, to every lock.
const Owner& this_thread_owner();

/// Those of one lock. Threads: any.
class ThreadHolds {
 public:
  void keep(Held held);
  /// The latest of this thread. Throws Error (bad_argument) when there is none; `name` is that of
  /// the lock.
  Held take(const std::string& name);

 private:
  struct Kept {
    std::thread::id thread;
    Held held;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_;  // latest last
};

}  // namespace sluice::lock
