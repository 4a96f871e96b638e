/// One simulated process, and its clock, which may run at a speed of its own. While the process
/// stands still neither a timer nor the network gets through to it. When it goes on it finds the
/// time passed, and all that waited, in no order between timers and network. Where the whole
/// machine was suspended, a steady clock that does not count that stood still too.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "lock/simulation/dice.hpp"
#include "lock/simulation/journal.hpp"
#include "sluice/clock.hpp"

namespace sluice::simulation {

/// How a process's clocks differ from the server's.
struct ClockTerms {
  double drift = 0;  ///< of its steady clock: 0.01 is one percent too fast
  std::chrono::microseconds wall_offset{};
  bool stands_suspended = false;  ///< CLOCK_MONOTONIC does, CLOCK_BOOTTIME does not
};

class SimProcess final : public Clock {
 public:
  /// `jitter`: how late a timer may be. `after_step` runs after everything that the process does.
  SimProcess(VirtualClock& world, Journal& journal, std::string name, Dice dice,
             std::chrono::nanoseconds jitter, ClockTerms clock, std::function<void()> after_step);

  const std::string& name() const noexcept { return name_; }
  bool stands_still() const noexcept { return still_; }
  /// Since when it runs; max() while it stands still.
  SteadyTime runs_since() const noexcept { return runs_since_; }
  SteadyTime stopped_at() const noexcept { return stopped_at_; }
  std::size_t pending_timers() const noexcept { return timers_.size(); }

  void stop();
  /// As stop(), of the whole machine.
  void suspend();
  void go_on();
  /// Some code of its user runs where nothing else of the process can run meanwhile.
  void block(std::chrono::nanoseconds time);
  void set_wall_offset(std::chrono::microseconds offset) { clock_.wall_offset = offset; }
  /// The network brings something: `work` runs now, or when the process goes on.
  void reach(std::function<void()> work);

  SteadyTime steady() const noexcept override { return own_time(world_.steady()); }
  WallTime wall() const noexcept override { return world_.wall() + clock_.wall_offset; }
  TimerId at(SteadyTime when, std::function<void()> callback) override;
  bool cancel(TimerId timer) override;

 private:
  struct Timer {
    SteadyTime when;
    TimerId in_world;
    std::function<void()> callback;
  };
  SteadyTime own_time(SteadyTime in_world) const noexcept;
  SteadyTime world_time(SteadyTime own) const noexcept;
  void due(TimerId id);
  void fire(TimerId id);
  void step(const std::function<void()>& work);

  VirtualClock& world_;
  Journal& journal_;
  const std::string name_;
  Dice dice_;
  const std::chrono::nanoseconds jitter_;
  const std::function<void()> after_step_;
  ClockTerms clock_;
  const SteadyTime began_;
  std::chrono::nanoseconds suspended_{};
  std::optional<SteadyTime> suspended_at_;
  bool still_ = false;
  SteadyTime runs_since_;
  SteadyTime stopped_at_;
  TimerId last_ = 0;
  std::map<TimerId, Timer> timers_;
  std::deque<TimerId> late_timers_;
  std::deque<std::function<void()>> late_work_;
};

}  // namespace sluice::simulation
