#include "sluice/clock.hpp"

#include <algorithm>
#include <thread>

#include "base/fork.hpp"

namespace sluice {
namespace {

// Not zero: code that subtracts from now shall not meet the beginning of time by accident.
constexpr SteadyTime virtual_start{std::chrono::hours{24}};

/// Timers of the real clock: one thread that sleeps until the earliest deadline.
class RealClock final : public Clock {
 public:
  SteadyTime steady() const noexcept override { return std::chrono::steady_clock::now(); }

  WallTime wall() const noexcept override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now());
  }

  TimerId at(SteadyTime when, std::function<void()> callback) override {
    const std::lock_guard lock{mutex_};
    if (!started_ || forks_ != fork_count()) {
      timers_.clear();  // a child's parent keeps its timers, and the thread
      when_.clear();
      // The thread lives as long as the process: timers may be set until the very end.
      std::thread{[this] { run(); }}.detach();
      started_ = true;
      forks_ = fork_count();
    }
    const TimerId id = ++last_;
    const auto added = timers_.emplace(std::pair{when, id}, std::move(callback)).first;
    when_.emplace(id, when);
    if (added == timers_.begin()) changed_.notify_one();
    return id;
  }

  bool cancel(TimerId timer) override {
    std::unique_lock lock{mutex_};
    if (const auto found = when_.find(timer); found != when_.end()) {
      timers_.erase({found->second, timer});
      when_.erase(found);
      return true;
    }
    if (std::this_thread::get_id() != runner_) idle_.wait(lock, [&] { return running_ != timer; });
    return false;
  }

 private:
  void run() {
    std::unique_lock lock{mutex_};
    runner_ = std::this_thread::get_id();
    for (;;) {
      if (timers_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const auto first = timers_.begin();
      const auto when = first->first.first;
      if (steady() < when) {
        changed_.wait_until(lock, when);
        continue;
      }
      running_ = first->first.second;
      auto callback = std::move(first->second);
      when_.erase(running_);
      timers_.erase(first);
      lock.unlock();
      callback();
      callback = nullptr;
      lock.lock();
      running_ = 0;
      idle_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  bool started_ = false;
  unsigned forks_ = 0;
  TimerId last_ = 0;
  TimerId running_ = 0;
  std::thread::id runner_;
  std::map<std::pair<SteadyTime, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, SteadyTime> when_;
};

}  // namespace

Clock& system_clock() {
  static auto* const clock = new RealClock;  // never destroyed: its thread outlives main()
  return *clock;
}

VirtualClock::VirtualClock(WallTime start) : steady_(virtual_start), wall_at_start_(start) {}

SteadyTime VirtualClock::steady() const noexcept {
  const std::lock_guard lock{mutex_};
  return steady_;
}

WallTime VirtualClock::wall() const noexcept {
  const std::lock_guard lock{mutex_};
  // From the whole way, not step by step, so that many steps below a microsecond add up.
  return wall_at_start_ + std::chrono::floor<std::chrono::microseconds>(steady_ - virtual_start);
}

Clock::TimerId VirtualClock::at(SteadyTime when, std::function<void()> callback) {
  const std::lock_guard lock{mutex_};
  const TimerId id = ++last_;
  timers_.emplace(std::pair{when, id}, std::move(callback));
  return id;
}

bool VirtualClock::cancel(TimerId timer) {
  std::unique_lock lock{mutex_};
  for (auto it = timers_.begin(); it != timers_.end(); ++it) {
    if (it->first.second == timer) {
      timers_.erase(it);
      return true;
    }
  }
  if (runner_ != std::this_thread::get_id()) idle_.wait(lock, [&] { return running_ != timer; });
  return false;
}

void VirtualClock::advance(std::chrono::nanoseconds by) {
  std::unique_lock lock{mutex_};
  const auto until = add(steady_, by);
  while (!timers_.empty() && timers_.begin()->first.first <= until) {
    const auto first = timers_.begin();
    steady_ = std::max(steady_, first->first.first);
    running_ = first->first.second;
    runner_ = std::this_thread::get_id();
    auto callback = std::move(first->second);
    timers_.erase(first);
    lock.unlock();
    callback();
    callback = nullptr;
    lock.lock();
    running_ = 0;
    idle_.notify_all();
  }
  steady_ = std::max(steady_, until);
}

void VirtualClock::jump_wall(std::chrono::microseconds by) {
  const std::lock_guard lock{mutex_};
  wall_at_start_ += by;
}

std::size_t VirtualClock::pending_timers() const {
  const std::lock_guard lock{mutex_};
  return timers_.size();
}

}  // namespace sluice
