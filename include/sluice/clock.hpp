/// Time, passed in. Nothing in the project reads a clock by itself.
///
/// Threads: any. A timer's callback runs on the clock's own thread (SystemClock) or on the thread
/// that advances it (VirtualClock); it must be short, must not block and must not throw. On the
/// clock's own thread Task::get() throws instead of blocking, and what a callback throws, of any
/// type, is logged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sluice/standard.hpp"

namespace sluice {

using SteadyTime = std::chrono::steady_clock::time_point;
/// Wall time in microseconds since the Unix epoch, UTC.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

class Clock {
 public:
  using TimerId = std::uint64_t;

  virtual ~Clock() = default;

  /// Never goes back. The machine's goes on while the machine is suspended: then it is ahead of
  /// std::chrono::steady_clock by that time.
  virtual SteadyTime steady() const noexcept = 0;
  virtual WallTime wall() const noexcept = 0;

  /// Runs `callback` once, at `when` or as soon after it as possible. O(log n).
  virtual TimerId at(SteadyTime when, std::function<void()> callback) = 0;
  /// After it returns the callback does not run, and is not running (unless called from the
  /// callback itself). False: it has run already.
  virtual bool cancel(TimerId timer) = 0;

  TimerId after(std::chrono::nanoseconds delay, std::function<void()> callback) {
    return at(add(steady(), delay), std::move(callback));
  }

  /// `time + delay`, but SteadyTime::max() where that is past the end of time, as in waits of
  /// `milliseconds::max()`. A `time` before the epoch is one like another.
  template <class Rep, class Period>
  static SteadyTime add(SteadyTime time, std::chrono::duration<Rep, Period> delay) noexcept {
    using Delay = std::chrono::duration<Rep, Period>;
    const auto left = SteadyTime::max() - std::max(time, SteadyTime{});
    return delay >= std::chrono::floor<Delay>(left) ? SteadyTime::max() : time + delay;
  }
};

/// The machine's clocks, and one thread for timers, started with the first timer.
Clock& system_clock();

/// A clock that stands still until it is told to move. `advance` fires due timers in order, on the
/// calling thread; one thread at a time may call it.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(WallTime start = WallTime{std::chrono::seconds{1'704'067'200}});
  ~VirtualClock() override;

  SteadyTime steady() const noexcept override;
  WallTime wall() const noexcept override;
  TimerId at(SteadyTime when, std::function<void()> callback) override;
  bool cancel(TimerId timer) override;

  void advance(std::chrono::nanoseconds by);
  /// Moves wall time alone, as an administrator or NTP does.
  void jump_wall(std::chrono::microseconds by);
  std::size_t pending_timers() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace sluice
