// A machine that was suspended. clock_gettime and timerfd_settime here take the place of libc's in
// this program: the boot clock is ahead of the monotonic one, and of the kernel's, by what the test
// says.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "engine/embedded_store.hpp"
#include "sluice/mutex.hpp"

namespace {
std::atomic<long> suspended_seconds{0};
}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_BOOTTIME) now->tv_sec += suspended_seconds.load();
  return result;
}

// All timers of this program are at times of the boot clock.
extern "C" int timerfd_settime(int timer, int flags, const itimerspec* when,
                               itimerspec* before) noexcept {
  itimerspec by_kernel = *when;
  by_kernel.it_value.tv_sec = std::max<time_t>(when->it_value.tv_sec - suspended_seconds.load(), 0);
  return static_cast<int>(::syscall(SYS_timerfd_settime, timer, flags, &by_kernel, before));
}

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(Suspended, K25_AHoldIsNotValidWhenTheMachineSleptThroughItsLease) {
  const auto store = engine::open_embedded();
  Mutex mutex{*store, "lock", {.lease = 30s}};
  auto held = mutex.acquire().get();
  EXPECT_TRUE(held.valid());
  const auto before = system_clock().steady();
  suspended_seconds = 20;
  EXPECT_TRUE(held.valid());
  EXPECT_LT(held.valid_for(), 10s);
  EXPECT_GE(system_clock().steady() - before, 20s);
  suspended_seconds = 40;
  EXPECT_FALSE(held.valid());
  // A deadline by steady_clock, which stood still, is as far away as the caller thinks.
  Mutex taken{*store, "taken"};
  const auto other = taken.acquire().get();
  const auto deadline = std::chrono::steady_clock::now() + 50ms;
  EXPECT_FALSE(taken.try_lock_until(deadline));
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
  suspended_seconds = 0;
}

}  // namespace
}  // namespace sluice
#endif
