/// SharedMutex behind the standard library's locks. (Time stands still; the threads do not need
/// it.)
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "lock/shared/virtual_shared.hpp"

namespace sluice {
namespace {

template <class L>
concept SharedTimedLockable = requires(L lock, std::chrono::microseconds wait,
                                       std::chrono::system_clock::time_point wall,
                                       SteadyTime steady) {
  lock.lock();
  lock.unlock();
  lock.lock_shared();
  lock.unlock_shared();
  { lock.try_lock() } -> std::same_as<bool>;
  { lock.try_lock_for(wait) } -> std::same_as<bool>;
  { lock.try_lock_until(wall) } -> std::same_as<bool>;
  { lock.try_lock_until(steady) } -> std::same_as<bool>;
  { lock.try_lock_shared() } -> std::same_as<bool>;
  { lock.try_lock_shared_for(wait) } -> std::same_as<bool>;
  { lock.try_lock_shared_until(wall) } -> std::same_as<bool>;
  { lock.try_lock_shared_until(steady) } -> std::same_as<bool>;
};
static_assert(SharedTimedLockable<SharedMutex>);

using StandardSharedLocks = VirtualShared;

TEST_F(StandardSharedLocks, SharedLocksShare) {
  const std::shared_lock mine{here_};
  std::jthread{[&] {
    const std::shared_lock theirs{here_, std::try_to_lock};
    EXPECT_TRUE(theirs.owns_lock());
    EXPECT_FALSE(there_.try_acquire().get());
  }}.join();
  EXPECT_EQ(mode(), "read");
}

TEST_F(StandardSharedLocks, UniqueLockIsAlone) {
  {
    const std::unique_lock mine{here_};
    std::jthread{[&] {
      std::shared_lock theirs{here_, std::try_to_lock};
      EXPECT_FALSE(theirs.owns_lock());
      EXPECT_FALSE(theirs.try_lock_for(0s));
      EXPECT_FALSE(theirs.try_lock_until(clock_.steady()));
      EXPECT_FALSE(theirs.try_lock_until(std::chrono::system_clock::time_point{}));
    }}.join();
  }
  expect_nothing_left();
}

TEST_F(StandardSharedLocks, ScopedLockTakesTwo) {
  SharedMutex till{line_, "till"};
  const std::scoped_lock both{here_, till};
  EXPECT_TRUE(exists("till"));
  EXPECT_EQ(mode(), "write");
}

TEST_F(StandardSharedLocks, WriterOfAThreadReadsOn) {
  std::unique_lock writing{here_};
  const std::shared_lock reading{here_};
  EXPECT_EQ(mode(), "write");
  writing.unlock();
  EXPECT_EQ(mode(), "read");
}

TEST_F(StandardSharedLocks, ReaderThatWantsToWriteIsRefusedByAnError) {
  const std::shared_lock reading{here_};
  EXPECT_THROW(here_.lock(), Error);
  EXPECT_THROW(here_.try_lock(), Error);
  EXPECT_EQ(mode(), "read");
}

TEST_F(StandardSharedLocks, UnlockOfWhatIsNotLockedIsRefused) {
  EXPECT_THROW(here_.unlock(), Error);
  EXPECT_THROW(here_.unlock_shared(), Error);
  here_.lock_shared();
  EXPECT_THROW(here_.unlock(), Error);
  std::jthread{[&] { EXPECT_THROW(here_.unlock_shared(), Error); }}.join();
  here_.unlock_shared();
  expect_nothing_left();
}

}  // namespace
}  // namespace sluice
