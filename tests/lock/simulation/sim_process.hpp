/// One simulated process, and its clock: the time is everybody's, but while the process stands
/// still neither a timer nor the network gets through to it. When it goes on it finds the time
/// passed, and all that waited, in no order between timers and network.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "lock/simulation/dice.hpp"
#include "sluice/clock.hpp"

namespace sluice::simulation {

class SimProcess final : public Clock {
 public:
  /// `jitter`: how late a timer may be. `after_step` runs after everything that the process does.
  SimProcess(VirtualClock& world, std::string name, Dice dice, std::chrono::nanoseconds jitter,
             std::function<void()> after_step);

  const std::string& name() const noexcept { return name_; }
  bool stands_still() const noexcept { return still_; }
  /// Since when it runs; max() while it stands still.
  SteadyTime runs_since() const noexcept { return runs_since_; }
  std::size_t pending_timers() const noexcept { return timers_.size(); }

  void stop();
  void go_on();
  /// The network brings something: `work` runs now, or when the process goes on.
  void reach(std::function<void()> work);

  SteadyTime steady() const noexcept override { return world_.steady(); }
  WallTime wall() const noexcept override { return world_.wall(); }
  TimerId at(SteadyTime when, std::function<void()> callback) override;
  bool cancel(TimerId timer) override;

 private:
  struct Timer {
    TimerId in_world;
    std::function<void()> callback;
  };
  void due(TimerId id);
  void fire(TimerId id);
  void step(const std::function<void()>& work);

  VirtualClock& world_;
  const std::string name_;
  Dice dice_;
  const std::chrono::nanoseconds jitter_;
  const std::function<void()> after_step_;
  bool still_ = false;
  SteadyTime runs_since_;
  TimerId last_ = 0;
  std::map<TimerId, Timer> timers_;
  std::deque<TimerId> late_timers_;
  std::deque<std::function<void()>> late_work_;
};

}  // namespace sluice::simulation
