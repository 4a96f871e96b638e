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
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "engine/embedded_store.hpp"
#include "sluice/mutex.hpp"
#include "support/comes_true.hpp"
#include "support/thread_sanitized.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(SLUICE_THREAD_SANITIZER)
namespace {

std::atomic<long> suspended_seconds{0};

/// The timers of this program, all at times of the boot clock. While the machine sleeps none goes
/// off; those whose time passed do when it wakes.
class Timers {
 public:
  int set(int timer, int flags, const itimerspec& when, itimerspec* before) {
    const std::lock_guard lock{mutex_};
    set_[timer] = {flags, when};
    return start(timer, flags, when, before);
  }

  void sleep() {
    const std::lock_guard lock{mutex_};
    asleep_ = true;
  }

  void wake() {
    const std::lock_guard lock{mutex_};
    asleep_ = false;
    for (const auto& [timer, set] : set_) start(timer, set.first, set.second, nullptr);
  }

 private:
  int start(int timer, int flags, itimerspec when, itimerspec* before) const {
    auto& seconds = when.it_value.tv_sec;
    if (!asleep_) seconds = std::max<time_t>(seconds - suspended_seconds.load(), 0);
    return static_cast<int>(::syscall(SYS_timerfd_settime, timer, flags, &when, before));
  }

  std::mutex mutex_;
  bool asleep_ = false;
  std::map<int, std::pair<int, itimerspec>> set_;
};

Timers& timers() {
  static Timers timers;
  return timers;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_BOOTTIME) now->tv_sec += suspended_seconds.load();
  return result;
}

extern "C" int timerfd_settime(int timer, int flags, const itimerspec* when,
                               itimerspec* before) noexcept {
  return timers().set(timer, flags, *when, before);
}

namespace sluice {
namespace {

using namespace std::chrono_literals;

bool sleeps(const std::filesystem::path& thread) {
  std::ifstream file{thread / "stat"};
  std::string stat;
  std::getline(file, stat);
  const auto end_of_name = stat.rfind(')');
  return end_of_name != stat.npos && stat.substr(end_of_name + 1).starts_with(" S");
}

/// Every thread of this process but the caller's waits for something.
bool others_sleep() {
  const auto self = std::to_string(::gettid());
  return std::ranges::all_of(std::filesystem::directory_iterator{"/proc/self/task"},
                             [&](const auto& thread) {
                               return thread.path().filename() == self || sleeps(thread.path());
                             });
}

TEST(Suspended, K25_AHoldIsNotValidWhenTheMachineSleptThroughItsLease) {
  const auto store = engine::open_embedded();
  Mutex mutex{*store, "lock", {.lease = 30s}};
  auto held = mutex.acquire().get();
  EXPECT_TRUE(held.valid());
  // Who renews holds waits for its timer, and does not wake while the machine sleeps.
  ASSERT_TRUE(test::comes_true(others_sleep));
  timers().sleep();
  const auto before = system_clock().steady();
  suspended_seconds = 20;
  EXPECT_TRUE(held.valid());
  EXPECT_LT(held.valid_for(), 10s);
  EXPECT_GE(system_clock().steady() - before, 20s);
  suspended_seconds = 40;
  EXPECT_FALSE(held.valid());
  timers().wake();
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
