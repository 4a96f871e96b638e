#include "base/fork.hpp"

#include <pthread.h>

#include <atomic>

namespace sluice {
namespace {

std::atomic<unsigned> forks{0};

// Before main(), so that no fork is missed.
[[maybe_unused]] const int registered =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

unsigned fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

}  // namespace sluice
