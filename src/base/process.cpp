#include "base/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace sluice {
namespace {

std::atomic<unsigned> forks{0};

// Before main(), so that no fork is missed.
[[maybe_unused]] const int registered =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

unsigned fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

std::string host_name() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return known ? name.data() : "unknown";
}

}  // namespace sluice
