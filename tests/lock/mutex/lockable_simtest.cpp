/// Mutex behind the standard library's locks. (Time stands still; the threads do not need it.)
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "lock/virtual_lock.hpp"
#include "sluice/fair_mutex.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

template <class L>
concept BasicLockable = requires(L lock) {
  lock.lock();
  lock.unlock();
};
template <class L>
concept Lockable = BasicLockable<L> && requires(L lock) {
  { lock.try_lock() } -> std::same_as<bool>;
};
template <class L>
concept TimedLockable = Lockable<L> &&
    requires(L lock, std::chrono::microseconds wait, std::chrono::system_clock::time_point wall,
             SteadyTime steady) {
  { lock.try_lock_for(wait) } -> std::same_as<bool>;
  { lock.try_lock_until(wall) } -> std::same_as<bool>;
  { lock.try_lock_until(steady) } -> std::same_as<bool>;
};
static_assert(TimedLockable<Mutex> && TimedLockable<FairMutex>);
static_assert(!std::is_copy_constructible_v<Held> && std::is_nothrow_move_constructible_v<Held>);
static_assert(!std::is_copy_constructible_v<Owner> && std::is_nothrow_move_constructible_v<Owner>);

using StandardLocks = VirtualLock;

TEST_F(StandardLocks, ScopedLockTakesTwo) {
  Mutex stock{line_, "stock"};
  Mutex till{line_, "till"};
  {
    const std::scoped_lock both{stock, till};
    EXPECT_TRUE(exists("stock"));
    EXPECT_TRUE(exists("till"));
  }
  EXPECT_FALSE(exists("stock"));
  EXPECT_FALSE(exists("till"));
}

TEST_F(StandardLocks, UniqueLockTriesAndWaits) {
  Mutex mutex{line_, "stock"};
  const auto held = mutex.acquire().get();
  std::unique_lock attempt{mutex, std::try_to_lock};
  EXPECT_FALSE(attempt.owns_lock());
  EXPECT_FALSE(attempt.try_lock_for(0s));
  EXPECT_FALSE(attempt.try_lock_until(clock_.steady()));
  EXPECT_FALSE(attempt.try_lock_until(std::chrono::system_clock::time_point{}));
}

struct Waits : Mutex {
  using Mutex::Mutex;
  using Mutex::time_until;
  using Mutex::whole_ms;
};

TEST_F(StandardLocks, Attack_WaitsThatDoNotFitAreTheLongestOrNone) {
  constexpr auto longest = std::chrono::milliseconds::max();
  EXPECT_EQ(Waits::whole_ms(std::chrono::hours::max()), longest);
  EXPECT_EQ(Waits::whole_ms(std::chrono::duration<double>{1e300}), longest);
  EXPECT_EQ(Waits::whole_ms(std::chrono::hours::min()), 0ms);
  EXPECT_EQ(Waits::whole_ms(std::chrono::duration<double>{std::nan("")}), 0ms);
  EXPECT_EQ(Waits::whole_ms(std::chrono::nanoseconds{1}), 1ms);
  const Waits mutex{line_, "stock"};
  EXPECT_EQ(mutex.time_until(SteadyTime::min()), 0ms);
  EXPECT_GT(mutex.time_until(SteadyTime::max()), 24h);
  EXPECT_EQ(mutex.time_until(std::chrono::sys_time<std::chrono::hours>::max()), longest);
  EXPECT_EQ(mutex.time_until(std::chrono::sys_time<std::chrono::hours>::min()), 0ms);
  EXPECT_EQ(mutex.time_until(clock_.steady() + 1500us), 2ms);
}

TEST_F(StandardLocks, ThreadEntersAgainAndOthersDoNot) {
  Mutex mutex{line_, "stock"};
  mutex.lock();
  EXPECT_TRUE(mutex.try_lock());
  std::jthread{[&] { EXPECT_FALSE(mutex.try_lock()); }}.join();
  mutex.unlock();
  EXPECT_TRUE(exists("stock"));
  mutex.unlock();
  EXPECT_FALSE(exists("stock"));
}

TEST_F(StandardLocks, UnlockOfAnothersHoldIsRefused) {
  Mutex mutex{line_, "stock"};
  EXPECT_THROW(mutex.unlock(), std::system_error);
  mutex.lock();
  std::jthread{[&] { EXPECT_THROW(mutex.unlock(), Error); }}.join();
  Mutex same_name{line_, "stock"};
  EXPECT_THROW(same_name.unlock(), Error);
  EXPECT_TRUE(exists("stock"));
  mutex.unlock();
  EXPECT_THROW(mutex.unlock(), Error);
}

TEST_F(StandardLocks, UnlockOfALostHoldDoesNotThrow) {
  Mutex mutex{line_, "stock", {.lease = 1s, .watchdog = false}};
  mutex.lock();
  clock_.advance(2s);
  EXPECT_NO_THROW(mutex.unlock());
}

TEST_F(StandardLocks, UnlockWithTheServerGoneDoesNotThrow) {
  Mutex mutex{line_, "stock"};
  {
    const std::lock_guard lock{mutex};
    fail_all("lock/mutex/release", Fault::refused);
  }
  EXPECT_TRUE(exists("stock"));
}

/// Whoever is let in by an unlock runs in it, and may use the same Mutex.
TEST_F(StandardLocks, WhoIsLetInByAnUnlockMayUnlockToo) {
  Mutex mutex{line_, "stock"};
  mutex.lock();
  bool was_in = false;
  const auto wait = [&]() -> Task<void> {
    const auto held = co_await mutex.acquire();
    EXPECT_THROW(mutex.unlock(), Error) << "its hold is no thread's";
    was_in = true;
  };
  spawn(wait());
  EXPECT_FALSE(was_in);
  mutex.unlock();
  EXPECT_TRUE(was_in);
}

/// W05. Each hold enters the watchdog's set and leaves it, whatever the others do.
TEST_F(StandardLocks, W05_SixteenThreadsTryAndUnlock) {
  constexpr int many = test::is_sanitized ? 500 : 10'000;
  std::atomic<int> inside{0};
  std::atomic<int> entered{0};
  Mutex mutex{*store_, "stock"};
  FairMutex fair{*store_, "queue"};
  Mutex held_all_the_while{*store_, "kept"};
  const auto kept = held_all_the_while.acquire().get();
  const auto try_often = [&] {
    for (int i = 0; i < many; ++i) {
      if (fair.try_lock()) fair.unlock();
      if (!mutex.try_lock()) continue;
      EXPECT_EQ(inside++, 0);
      ++entered;
      --inside;
      mutex.unlock();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i) threads.emplace_back(try_often);
  }
  EXPECT_GT(entered, 0);
  EXPECT_FALSE(exists("stock"));
  EXPECT_FALSE(exists("queue"));
  const auto renewals = metrics().lock_renewals.load();
  clock_.advance(7500ms);  // a quarter of the lease
  EXPECT_EQ(metrics().lock_renewals.load(), renewals + 1) << "of the one that is still held";
  EXPECT_TRUE(kept.valid());
}

TEST_F(StandardLocks, L08_OwnerMovesBetweenThreads) {
  Mutex mutex{line_, "stock"};
  std::optional<Held> held;
  std::jthread{[&] { held = mutex.acquire().get(); }}.join();
  EXPECT_TRUE(held->valid());
  EXPECT_EQ(held->release().get().kind, Kind::released);
}

}  // namespace
}  // namespace sluice
