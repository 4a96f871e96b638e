/// Mutex as the standard library wants it: the owner is the thread.
#include "lock/hold/thread_holds.hpp"
#include "sluice/mutex.hpp"

namespace sluice {

void Mutex::lock() { threads_->keep(acquire(lock::this_thread_owner()).get()); }

bool Mutex::try_lock() { return lock_within(std::chrono::milliseconds{0}); }

bool Mutex::lock_within(std::chrono::milliseconds wait) {
  auto held = try_acquire(lock::this_thread_owner(), wait).get();
  if (!held) return false;
  threads_->keep(std::move(*held));
  return true;
}

void Mutex::unlock() { (void)threads_->take(name()); }

}  // namespace sluice
