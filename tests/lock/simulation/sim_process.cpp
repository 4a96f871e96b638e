#include "lock/simulation/sim_process.hpp"

namespace sluice::simulation {

SimProcess::SimProcess(VirtualClock& world, Journal& journal, std::string name, Dice dice,
                       std::chrono::nanoseconds jitter, ClockTerms clock,
                       std::function<void()> after_step)
    : world_(world),
      journal_(journal),
      name_(std::move(name)),
      dice_(dice),
      jitter_(jitter),
      after_step_(std::move(after_step)),
      clock_(clock),
      began_(world.steady()),
      runs_since_(world.steady()),
      stopped_at_(runs_since_) {}

SteadyTime SimProcess::own_time(SteadyTime in_world) const noexcept {
  if (suspended_at_) in_world = *suspended_at_;
  const auto passed = in_world - began_;
  const auto ahead = static_cast<double>(passed.count()) * clock_.drift;
  return in_world - suspended_ + std::chrono::nanoseconds{static_cast<std::int64_t>(ahead)};
}

SteadyTime SimProcess::world_time(SteadyTime own) const noexcept {
  if (own == SteadyTime::max()) return own;
  const auto passed = (add(own, suspended_) - began_).count();
  const auto in_world = static_cast<double>(passed) / (1 + clock_.drift);
  return clock_.drift == 0
             ? add(own, suspended_)
             : add(began_, std::chrono::nanoseconds{static_cast<std::int64_t>(in_world) + 1});
}

void SimProcess::stop() {
  still_ = true;
  runs_since_ = SteadyTime::max();
  stopped_at_ = world_.steady();
}

void SimProcess::suspend() {
  stop();
  if (clock_.stands_suspended) suspended_at_ = world_.steady();
}

void SimProcess::go_on() {
  if (!still_) return;
  still_ = false;
  runs_since_ = world_.steady();
  if (suspended_at_) suspended_ += runs_since_ - *std::exchange(suspended_at_, std::nullopt);
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

/// It counts as running: that is no excuse for a lost hold.
void SimProcess::block(std::chrono::nanoseconds time) {
  if (std::exchange(still_, true)) return;
  world_.after(time, [this] {
    const auto since = runs_since_;
    go_on();
    runs_since_ = since;
  });
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
  const auto late = add(world_time(when), dice_.upto(jitter_));
  const TimerId in_world = world_.at(late, [this, id] { due(id); });
  timers_.emplace(id, Timer{when, in_world, std::move(callback)});
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
  if (found == timers_.end()) return;   // cancelled by what came through before it
  if (steady() < found->second.when) {  // its clock stood still
    found->second.in_world = world_.at(world_time(found->second.when), [this, id] { due(id); });
    return;
  }
  const auto callback = std::move(found->second.callback);
  timers_.erase(found);
  step(callback);
}

void SimProcess::step(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {  // as on the clock's own thread, which logs it
    journal_.note("{}: something was thrown out of a timer or a handler", name_);
  }
  after_step_();
}

}  // namespace sluice::simulation
