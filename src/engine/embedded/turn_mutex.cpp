#include "engine/embedded/turn_mutex.hpp"

#include <thread>

namespace sluice::engine {
namespace {

// Long against the cost of beginning a turn (some 5 us, and a wake-up of each sleeper), short
// against a time slice of the scheduler.
constexpr std::chrono::microseconds turn{1000};

// A look at the mutex takes its cache line from the holder: one in some 100 ns is enough.
constexpr int pauses_a_look = 8;
constexpr int looks = 80;
// A thread that calls without a pause locks again within fewer looks than this.
constexpr int free_looks = 10;

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// On one core the holder cannot go on while a waiter spins.
bool spinning_helps() noexcept {
  static const bool several = std::thread::hardware_concurrency() > 1;
  return several;
}

}  // namespace

void TurnMutex::lock_slowly() noexcept {
  if (spin(free_looks, taken)) return;
  bool was_turn = sleep_through_turn();
  // A waiter that has slept does not know whether others still sleep, so it takes the mutex as
  // slept_on: its unlock wakes one of them.
  for (int as = taken; !spin(1, as);) {
    if (was_turn && (was_turn = sleep_through_turn())) continue;  // another thread began a turn
    as = slept_on;
    if (state_.exchange(slept_on, std::memory_order_acquire) == free) break;
    state_.wait(slept_on, std::memory_order_relaxed);
  }
  begin_turn();
}

/// Takes the mutex after it was free at `patience` looks in a row. False: not within the time.
bool TurnMutex::spin(int patience, int as) noexcept {
  if (!spinning_helps()) return try_lock(as);
  int seen_free = 0;
  for (int i = 0; i < looks; ++i) {
    seen_free = state_.load(std::memory_order_relaxed) == free ? seen_free + 1 : 0;
    if (seen_free >= patience && try_lock(as)) return true;
    for (int wait = 0; wait < pauses_a_look; ++wait) pause();
  }
  return false;
}

/// False: no thread has a turn.
bool TurnMutex::sleep_through_turn() const noexcept {
  const auto end = turn_began_.load(std::memory_order_relaxed) + turn;
  if (system_clock().steady() >= end) return false;
  std::this_thread::sleep_until(end);
  return true;
}

void TurnMutex::begin_turn() noexcept {
  turn_began_.store(system_clock().steady(), std::memory_order_relaxed);
}

}  // namespace sluice::engine
