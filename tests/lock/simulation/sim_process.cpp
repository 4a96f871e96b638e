#include "lock/simulation/sim_process.hpp"

namespace sluice::simulation {

SimProcess::SimProcess(VirtualClock& world, std::string name, Dice dice,
                       std::chrono::nanoseconds jitter, std::function<void()> after_step)
    : world_(world),
      name_(std::move(name)),
      dice_(dice),
      jitter_(jitter),
      after_step_(std::move(after_step)),
      runs_since_(world.steady()) {}

void SimProcess::stop() {
  still_ = true;
  runs_since_ = SteadyTime::max();
}

void SimProcess::go_on() {
  if (!still_) return;
  still_ = false;
  runs_since_ = world_.steady();
  while (!late_timers_.empty() || !late_work_.empty()) {
    const bool timer = late_work_.empty() || (!late_timers_.empty() && dice_.chance(50));
    if (timer) {
      const TimerId id = late_timers_.front();
      late_timers_.pop_front();
      fire(id);
    } else {
      const auto work = std::move(late_work_.front());
      late_work_.pop_front();
      step(work);
    }
  }
}

void SimProcess::reach(std::function<void()> work) {
  if (still_) {
    late_work_.push_back(std::move(work));
  } else {
    step(work);
  }
}

Clock::TimerId SimProcess::at(SteadyTime when, std::function<void()> callback) {
  const TimerId id = ++last_;
  const auto late = add(when, dice_.upto(jitter_));
  const TimerId in_world = world_.at(late, [this, id] { due(id); });
  timers_.emplace(id, Timer{in_world, std::move(callback)});
  return id;
}

bool SimProcess::cancel(TimerId timer) {
  const auto found = timers_.find(timer);
  if (found == timers_.end()) return false;
  world_.cancel(found->second.in_world);
  timers_.erase(found);
  return true;
}

void SimProcess::due(TimerId id) {
  if (still_) {
    late_timers_.push_back(id);
  } else {
    fire(id);
  }
}

void SimProcess::fire(TimerId id) {
  const auto found = timers_.find(id);
  if (found == timers_.end()) return;  // cancelled by what came through before it
  const auto callback = std::move(found->second.callback);
  timers_.erase(found);
  step(callback);
}

void SimProcess::step(const std::function<void()>& work) {
  work();
  after_step_();
}

}  // namespace sluice::simulation
