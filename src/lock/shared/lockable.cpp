/// SharedMutex as the standard library wants it: the owner is the thread.
#include "lock/hold/thread_holds.hpp"
#include "sluice/shared_mutex.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

bool keep(lock::ThreadHolds& threads, std::optional<Held> held) {
  if (!held) return false;
  threads.keep(*std::move(held));
  return true;
}

}  // namespace

void SharedMutex::lock() { writing_threads_->keep(acquire(lock::this_thread_owner()).get()); }

bool SharedMutex::try_lock() { return lock_within(milliseconds{0}); }

bool SharedMutex::lock_within(milliseconds wait) {
  return keep(*writing_threads_, try_acquire(lock::this_thread_owner(), wait).get());
}

void SharedMutex::unlock() { const Held released = writing_threads_->take(name()); }

void SharedMutex::lock_shared() {
  reading_threads_->keep(acquire_shared(lock::this_thread_owner()).get());
}

bool SharedMutex::try_lock_shared() { return lock_shared_within(milliseconds{0}); }

bool SharedMutex::lock_shared_within(milliseconds wait) {
  return keep(*reading_threads_, try_acquire_shared(lock::this_thread_owner(), wait).get());
}

void SharedMutex::unlock_shared() { const Held released = reading_threads_->take(name()); }

}  // namespace sluice
