/// Calling what users gave us, and what every thread has of its own.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace sluice {

/// The text of an exception of any type. REQUIRES: `error` is not null.
std::string text_of(const std::exception_ptr& error);

/// Logs as an error that `what` has thrown `error`. Never throws.
void report_thrown(std::string_view what, const std::exception_ptr& error) noexcept;

/// Calls a user's function. Whatever it throws is logged: "`what` threw: ...".
template <class Function>
void call_user(std::string_view what, Function&& function) noexcept {
  try {
    function();
  } catch (...) {
    report_thrown(what, std::current_exception());
  }
}

/// The T of this thread. It outlives all thread_local objects, and on the main thread all static
/// ones: their destructors may use it.
template <class T>
T& of_this_thread() {
  static thread_local T* mine = nullptr;
  if (mine) return *mine;
  // Keys are destroyed after the thread_local objects, and not at all when main() returns.
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ::pthread_key_create(&made, [](void* value) {
      delete static_cast<T*>(value);
      mine = nullptr;
    });
    return made;
  }();
  mine = new T;
  ::pthread_setspecific(key, mine);
  return *mine;
}

/// The number of this thread among all that this process has ever had; unlike its id it never comes
/// again.
std::uint64_t this_thread_number() noexcept;

}  // namespace sluice
