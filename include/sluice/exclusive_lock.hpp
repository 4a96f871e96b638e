/// The verbs of every lock that one holder has at a time: Mutex, FairMutex, and SharedMutex to
/// write.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "sluice/held.hpp"
#include "sluice/store_pointer.hpp"

namespace sluice {

struct LockInfo;  // in sluice/lock_info.hpp

namespace lock {
class Entrance;
class LockResource;
}  // namespace lock

class ExclusiveLock {
 public:
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

  /// Waits until it is held, also through outages of the server. Throws Error (authentication,
  /// wrong_type, closed ...): a hold, or a place in the queue, that may have come about all the
  /// same is taken back in the background; the hold ends with its lease at the latest. It is given
  /// back, too, when the Task is dropped meanwhile.
  Task<Held> acquire();
  /// The same; an owner that is in enters once more. Acquires of one owner go one after another.
  Task<Held> acquire(const Owner& owner);

  /// Waits up to `wait`, or until `stop` is requested. Empty: another held it all the while.
  /// Without a wait: one round trip. Throws as `acquire`, and (connection, timeout, read_only) when
  /// the server was away at the end of the wait.
  Task<std::optional<Held>> try_acquire(std::chrono::milliseconds wait = {},
                                        std::stop_token stop = {});
  Task<std::optional<Held>> try_acquire(const Owner& owner, std::chrono::milliseconds wait = {},
                                        std::stop_token stop = {});

  const std::string& name() const noexcept;

  /// The holders and the waiters, for operators: one round trip, O(holders + waiters), of each
  /// queue the first 1000. Include sluice/lock_info.hpp. Waiters of a Mutex behind a holder of
  /// their own process are shown after a second; those of a SharedMutex that write come first.
  Task<LockInfo> info();

  /// Ends all holds, to read too, whichever processes have them, and lets in whom it is the turn
  /// of. The holders learn of it with their next renewal, and those without a watchdog not before
  /// their lease ends; at once if it is the last that this FairMutex let in. False: the lock was
  /// free. A copy of a holder's request that the network
  /// holds, and delivers after this, lets that holder in again if the lock is free then, until its
  /// lease ends. Throws Error (wrong_type) for a key that is no lock, and leaves it as it is.
  Task<bool> force_release();

  // As the standard library wants it (TimedLockable): the owner is the thread, not its id, which
  // may come again. Entering again is allowed, as with std::recursive_mutex. A coroutine that no
  // thread waits for must not be inside at a co_await: that throws Error (bad_argument). `lock` and
  // `try_lock...` throw Error as `acquire`. `unlock` releases as ~Held does; it throws Error
  // (bad_argument) when this thread is not in, but not when the hold was lost, which is logged and
  // counted.
  void lock();
  bool try_lock();
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return lock_within(whole_ms(wait));
  }
  template <class AnyClock, class Duration>
  bool try_lock_until(const std::chrono::time_point<AnyClock, Duration>& when) {
    return lock_within(time_until(when));
  }
  void unlock();

 protected:
  /// `label`: empty for the name of the program.
  ExclusiveLock(std::shared_ptr<lock::LockResource> resource, std::string label);
  ~ExclusiveLock();

  /// Rounded up; the longest there is for what is longer, as hours::max() is; 0 for less than 0.
  template <class Rep, class Period>
  static std::chrono::milliseconds whole_ms(const std::chrono::duration<Rep, Period>& wait) {
    const std::chrono::duration<double, std::milli> about = wait;
    if (about.count() >= 9e18) return std::chrono::milliseconds::max();
    return about.count() > 0 ? std::chrono::ceil<std::chrono::milliseconds>(wait)
                             : std::chrono::milliseconds{0};
  }
  template <class AnyClock, class Duration>
  std::chrono::milliseconds time_until(
      const std::chrono::time_point<AnyClock, Duration>& when) const {
    using Seconds = std::chrono::duration<double>;
    const auto now = now_of<AnyClock>();
    const auto about = Seconds{when.time_since_epoch()} - Seconds{now.time_since_epoch()};
    // Decades away the exact difference does not matter, and may not fit.
    return std::chrono::abs(about) > Seconds{1e9} ? whole_ms(about) : whole_ms(when - now);
  }

 private:
  bool lock_within(std::chrono::milliseconds wait);
  template <class AnyClock>
  auto now_of() const {
    if constexpr (std::is_same_v<AnyClock, std::chrono::steady_clock>)
      if (&clock_ != &system_clock()) return clock_.steady();  // virtual time
    return AnyClock::now();                                    // the caller's clock, not ours
  }

  Clock& clock_;
  const std::unique_ptr<lock::Entrance> entrance_;
};

}  // namespace sluice
