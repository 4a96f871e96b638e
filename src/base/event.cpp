#include "base/event.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

#include "sluice/error.hpp"

namespace sluice {
namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return ::syscall(SYS_futex, static_cast<void*>(&word), operation | FUTEX_PRIVATE_FLAG, value,
                   limit, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

void Event::set() noexcept {
  const auto before = state_.exchange(set_state, std::memory_order_acq_rel);
  if (before == sleeping_state) {
    futex(state_, FUTEX_WAKE, INT_MAX, nullptr);
  } else if (before >= watched_state) {
    // Fails only when the counter is at its limit, and then poll() wakes anyway.
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written =
        ::write(static_cast<int>(before - watched_state), &one, sizeof one);
  }
}

bool Event::watch(int eventfd) noexcept {
  std::uint32_t seen = clear_state;
  return state_.compare_exchange_strong(seen, watched_state + static_cast<std::uint32_t>(eventfd),
                                        std::memory_order_acq_rel);
}

void Event::unwatch() noexcept {
  auto seen = state_.load(std::memory_order_acquire);
  if (seen >= watched_state)
    state_.compare_exchange_strong(seen, clear_state, std::memory_order_acq_rel);
}

void Event::wait() noexcept {
  while (!sleep(std::nullopt)) {
  }
}

bool Event::wait_until(SteadyTime deadline) noexcept { return sleep(deadline); }

bool Event::sleep(std::optional<SteadyTime> deadline) noexcept {
  timespec until{};
  if (deadline) {
    // The kernel refuses a time before zero, which has passed anyway.
    const auto since = std::max(deadline->time_since_epoch(), SteadyTime::duration::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    until.tv_sec = static_cast<time_t>(seconds.count());
    until.tv_nsec = static_cast<long>(std::chrono::nanoseconds{since - seconds}.count());
  }
  for (;;) {
    auto seen = state_.load(std::memory_order_acquire);
    if (seen == set_state) return true;
    if (seen == clear_state &&
        !state_.compare_exchange_weak(seen, sleeping_state, std::memory_order_acq_rel))
      continue;
    // FUTEX_WAIT_BITSET takes an absolute time on CLOCK_MONOTONIC, which is steady_clock's.
    if (futex(state_, FUTEX_WAIT_BITSET, sleeping_state, deadline ? &until : nullptr) != 0 &&
        errno == ETIMEDOUT)
      return is_set();
  }
}

void NoBlocking::refuse(const char* call) {
  throw Error{Errc::bad_argument,
              std::string{call} + " would block the thread that " + duty_ +
                  ": co_await the Task, or go to a thread of your own before, by co_await "
                  "resume_on(executor)"};
}

}  // namespace sluice
