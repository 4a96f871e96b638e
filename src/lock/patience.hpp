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

/// Suspends until `call` is complete, `until`, or `stop`.
Task<void> rest(std::shared_ptr<Completion> call, Clock& clock, SteadyTime until,
                std::stop_token stop);

}  // namespace sluice::lock
