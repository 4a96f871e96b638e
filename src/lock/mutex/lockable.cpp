/// Mutex as the standard library wants it: the owner is the thread.
#include <algorithm>
#include <ranges>

#include "lock/hold/steps.hpp"
#include "sluice/mutex.hpp"

namespace sluice {
namespace {

const Owner& this_thread() {
  thread_local const Owner owner;
  return owner;
}

}  // namespace

void Mutex::lock() { keep_for_this_thread(acquire(this_thread()).get()); }

bool Mutex::try_lock() { return lock_within(std::chrono::milliseconds{0}); }

bool Mutex::lock_within(std::chrono::milliseconds wait) {
  auto held = try_acquire(this_thread(), wait).get();
  if (!held) return false;
  keep_for_this_thread(std::move(*held));
  return true;
}

void Mutex::keep_for_this_thread(Held held) {
  const std::lock_guard lock{threads_mutex_};
  thread_holds_.push_back({std::this_thread::get_id(), std::move(held)});
}

void Mutex::unlock() {
  Held held;  // released without the mutex
  {
    const std::lock_guard lock{threads_mutex_};
    const auto mine = std::ranges::find(thread_holds_ | std::views::reverse,
                                        std::this_thread::get_id(), &ThreadHold::thread);
    if (mine == thread_holds_.rend())
      throw Error{Errc::bad_argument,
                  "unlock of lock " + lock::quoted(name()) + ", which this thread has not locked"};
    held = std::move(mine->held);
    thread_holds_.erase(std::next(mine).base());
  }
}

}  // namespace sluice
