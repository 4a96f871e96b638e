/// How threads sleep, and which of them must not.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "sluice/clock.hpp"

namespace sluice {

/// A flag that threads can sleep on: one futex word, no mutex. Setting it twice is setting it once.
/// A thread that sleeps in poll() instead lends it an eventfd.
class Event {
 public:
  bool is_set() const noexcept { return state_.load(std::memory_order_acquire) == set_state; }

  /// Wakes every sleeper. No system call when nobody sleeps.
  void set() noexcept;
  /// An exchange, not a store: what was published before an earlier set() is visible afterwards.
  void reset() noexcept { take(); }
  /// Resets it. True: it was set.
  bool take() noexcept {
    return state_.exchange(clear_state, std::memory_order_acq_rel) == set_state;
  }

  /// Sleeps until set. REQUIRES: no `reset` by another thread meanwhile.
  void wait() noexcept;
  /// The same with a limit in real time. False: the time is up and the event is not set.
  bool wait_until(SteadyTime deadline) noexcept;

  /// For a thread that is going to sleep in poll(): from now on set() also writes to `eventfd`.
  /// False: the event is set already, do not sleep.
  bool watch(int eventfd) noexcept;
  void unwatch() noexcept;

 private:
  static constexpr std::uint32_t clear_state = 0;
  static constexpr std::uint32_t set_state = 1;
  static constexpr std::uint32_t sleeping_state = 2;
  static constexpr std::uint32_t watched_state = 3;  // plus the number of the eventfd

  bool sleep(std::optional<SteadyTime> deadline) noexcept;

  std::atomic<std::uint32_t> state_{clear_state};
};

/// Marks a thread that others depend on. While the mark lives, Task::get() throws on this thread
/// instead of stopping them all.
class NoBlocking {
 public:
  /// `duty` ends the sentence "the thread that ..."; null: it may block.
  explicit NoBlocking(const char* duty) noexcept : before_(std::exchange(duty_, duty)) {}
  ~NoBlocking() { duty_ = before_; }
  NoBlocking(const NoBlocking&) = delete;
  NoBlocking& operator=(const NoBlocking&) = delete;

  /// Null: this thread may block.
  static const char* duty_of_this_thread() noexcept { return duty_; }
  /// Throws Error{bad_argument} where this thread must not block; `call` is what would.
  static void check(const char* call) {
    if (duty_) refuse(call);
  }

 private:
  [[noreturn]] static void refuse(const char* call);

  inline static thread_local const char* duty_ = nullptr;
  const char* before_;
};

}  // namespace sluice
