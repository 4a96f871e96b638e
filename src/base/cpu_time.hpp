/// How long a thread has really run.
#pragma once

#include <chrono>

namespace sluice {

/// Of this thread: it stands while the thread does not run, whatever is done to the clocks.
std::chrono::nanoseconds thread_cpu_time() noexcept;

}  // namespace sluice
