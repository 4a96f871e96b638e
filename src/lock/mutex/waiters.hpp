/// Who waits for a Mutex, out of what the server knows of it.
#pragma once

#include <chrono>
#include <vector>

#include "sluice/held.hpp"
#include "sluice/value.hpp"

namespace sluice::lock {

/// `tickets`: the queue (lock/mutex/mutex.lua, part hand_over). `told`: what processes tell of those that have
/// waited for long (lock/wait/report_waiters.lua). A ticket is that of a process, by the name of
/// whoever was its first when it took it: where a process tells who waits, these stand in its
/// place. Those behind a holder of their own process come last. Nobody twice.
std::vector<LockInfo::Waiter> waiters_of(const Value& tickets, const Value& told,
                                         std::chrono::milliseconds now);

}  // namespace sluice::lock
