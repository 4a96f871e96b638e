/// How waiters wait: until when, and for what.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>

#include "sluice/task.hpp"

namespace sluice::lock {

inline constexpr std::chrono::milliseconds for_ever = std::chrono::milliseconds::max();
/// A waiter looks again after this time even if it hears nothing.
inline constexpr std::chrono::milliseconds longest_rest = std::chrono::seconds{30};

/// `wait` from now, as far as the clock can count.
inline SteadyTime deadline(const Clock& clock, std::chrono::milliseconds wait) {
  using std::chrono::nanoseconds;
  constexpr auto countable = std::chrono::floor<std::chrono::milliseconds>(nanoseconds::max());
  return Clock::add(clock.steady(), wait > countable ? nanoseconds::max() : nanoseconds{wait});
}

/// Suspends until `call` is complete, `until`, or `stop`.
Task<void> rest(std::shared_ptr<Completion> call, Clock& clock, SteadyTime until,
                std::stop_token stop);

}  // namespace sluice::lock
