/// A mutex for sections of a microsecond or so. Threads that lock it without a pause get it in
/// turns of many sections.
///
/// A section touches data in the cache of the core that ran the last one. If threads took the mutex
/// from each other at every section, each would wait for a hundred cache lines, and all of them
/// together would do less than one alone. So a thread that finds the mutex taken
///   1. watches for a moment whether it stays free, unless a thread locks it without pause;
///   2. sleeps to the end of the turn, if a thread has one;
///   3. tries for a moment to take it as soon as it is free, which begins its own turn;
///   4. sleeps until an unlock wakes it (the section is a long one), and goes on at 3.
///
/// Guarantee: mutual exclusion; no system call in a free lock() and its unlock(); between two
///   sleeps a waiter spins for microseconds only.
/// Not guaranteed: order.
/// Threads: any; it is not recursive.
#pragma once

#include <atomic>

#include "sluice/clock.hpp"

namespace sluice::engine {

class TurnMutex {
 public:
  void lock() noexcept {
    if (!try_lock()) lock_slowly();
  }
  void unlock() noexcept {
    if (state_.exchange(free, std::memory_order_release) == slept_on) state_.notify_one();
  }

 private:
  static constexpr int free = 0;
  static constexpr int taken = 1;
  static constexpr int slept_on = 2;  // taken, and a waiter may sleep until the unlock

  bool try_lock(int as = taken) noexcept {
    int seen = free;
    return state_.compare_exchange_strong(seen, as, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void lock_slowly() noexcept;
  bool spin(int patience, int as) noexcept;
  bool sleep_through_turn() const noexcept;
  void begin_turn() noexcept;

  std::atomic<int> state_{free};
  std::atomic<SteadyTime> turn_began_{};  // written by a holder that had to wait
};

}  // namespace sluice::engine
