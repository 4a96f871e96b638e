#include "sluice/clock.hpp"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/callback.hpp"
#include "base/cpu_time.hpp"
#include "base/descriptor.hpp"
#include "base/event.hpp"
#include "base/process.hpp"
#include "base/thread.hpp"
#include "base/timers.hpp"

namespace sluice {
namespace {

// Not zero: code that subtracts from now shall not meet the beginning of time by accident.
constexpr SteadyTime virtual_start{std::chrono::hours{24}};

std::chrono::nanoseconds time_of(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

/// For how long the machine was suspended before this process asked first. Taken off, steady() is
/// the time of steady_clock until the machine is suspended again.
std::chrono::nanoseconds suspended_before() noexcept {
  static const auto before = time_of(CLOCK_BOOTTIME) - time_of(CLOCK_MONOTONIC);
  return before;
}

/// CLOCK_MONOTONIC stands still while the machine is suspended, and leases go on.
SteadyTime steady_time() noexcept {
  return SteadyTime{time_of(CLOCK_BOOTTIME) - suspended_before()};
}

/// The timers of one process: one thread that sleeps until the earliest deadline. Never destroyed:
/// the thread outlives main().
class Timers {
 public:
  using TimerId = Clock::TimerId;

  explicit Timers(TimerId last)
      : last_(last), timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC), "timerfd_create") {}

  void start() {
    const std::lock_guard lock{mutex_};
    start_once();
  }

  TimerId at(SteadyTime when, std::function<void()> callback) {
    const std::lock_guard lock{mutex_};
    start_once();
    const TimerId id = ++last_;
    const auto known = when_.emplace(id, when).first;
    auto added = timers_.end();
    try {
      added = timers_.emplace(std::pair{when, id}, std::move(callback)).first;
    } catch (...) {
      when_.erase(known);
      throw;
    }
    if (added == timers_.begin()) wake_at(when);
    return id;
  }

  bool cancel(TimerId timer) {
    if (timer == 0) return false;  // of no timer: at() has thrown
    std::unique_lock lock{mutex_};
    if (const auto found = when_.find(timer); found != when_.end()) {
      timers_.erase({found->second, timer});
      when_.erase(found);
      return true;
    }
    if (std::this_thread::get_id() != runner_) idle_.wait(lock, [&] { return running_ != timer; });
    return false;
  }

  void await_running() {
    std::unique_lock lock{mutex_};
    const TimerId now = running_;
    idle_.wait(lock, [&] { return now == 0 || running_ != now; });
  }

  unsigned forks() const noexcept { return forks_; }
  /// No timer of a child has the number of one of its parent.
  TimerId first_of_a_child() const noexcept { return last_ + (TimerId{1} << 32); }

 private:
  void start_once() {
    if (!started_) start_thread([this] { run(); }).detach();
    started_ = true;
  }

  /// The thread sleeps until then, or shorter.
  void wake_at(SteadyTime when) noexcept {
    const auto since = std::max(Clock::add(when, suspended_before()).time_since_epoch(),
                                SteadyTime::duration{1});  // 0 would disarm it
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    itimerspec next{};
    next.it_value.tv_sec = static_cast<time_t>(seconds.count());
    next.it_value.tv_nsec = static_cast<long>((since - seconds).count());
    ::timerfd_settime(timer_.number(), TFD_TIMER_ABSTIME, &next, nullptr);
  }
  void sleep() const noexcept {
    std::uint64_t expired = 0;
    [[maybe_unused]] const auto got = ::read(timer_.number(), &expired, sizeof expired);
  }
  static void call(std::function<void()> callback) noexcept {
    call_user("a timer's callback", callback);
  }

  void run() {
    const NoBlocking serving{"runs all timers of the process, renewals of locks among them"};
    std::unique_lock lock{mutex_};
    runner_ = std::this_thread::get_id();
    for (;;) {
      const auto first = timers_.begin();
      if (first == timers_.end() || steady_time() < first->first.first) {
        if (first != timers_.end()) wake_at(first->first.first);
        lock.unlock();
        sleep();
        lock.lock();
        continue;
      }
      running_ = first->first.second;
      auto callback = std::move(first->second);
      when_.erase(running_);
      timers_.erase(first);
      lock.unlock();
      call(std::move(callback));
      lock.lock();
      running_ = 0;
      idle_.notify_all();
    }
  }

  const unsigned forks_ = fork_count();
  std::mutex mutex_;
  std::condition_variable idle_;
  bool started_ = false;
  TimerId last_;
  const Descriptor timer_;
  TimerId running_ = 0;
  std::thread::id runner_;
  std::map<std::pair<SteadyTime, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, SteadyTime> when_;
};

class RealClock final : public Clock {
 public:
  SteadyTime steady() const noexcept override { return steady_time(); }

  WallTime wall() const noexcept override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now());
  }

  TimerId at(SteadyTime when, std::function<void()> callback) override {
    return timers().at(when, std::move(callback));
  }
  bool cancel(TimerId timer) override { return timers().cancel(timer); }

  void ready() { timers().start(); }
  void await_running() noexcept {
    Timers* const now = timers_.load(std::memory_order_acquire);
    if (now && now->forks() == fork_count()) now->await_running();
  }

 private:
  /// Of this process. A child leaves those of its parent alone: their mutex may be locked for ever,
  /// by a thread that it does not have.
  Timers& timers() {
    Timers* now = timers_.load(std::memory_order_acquire);
    if (now && now->forks() == fork_count()) return *now;
    auto* const mine = new Timers{now ? now->first_of_a_child() : 0};
    if (timers_.compare_exchange_strong(now, mine, std::memory_order_acq_rel)) return *mine;
    delete mine;
    return *now;
  }

  std::atomic<Timers*> timers_{nullptr};
};

RealClock& real_clock() {
  static auto* const clock = new RealClock;  // never destroyed, like its timers
  return *clock;
}

}  // namespace

Clock& system_clock() { return real_clock(); }

void ready_timers() { real_clock().ready(); }

void await_running_timer() noexcept {
  if (!NoBlocking::duty_of_this_thread()) real_clock().await_running();
}

struct VirtualClock::State {
  mutable std::mutex mutex;
  std::condition_variable idle;
  SteadyTime steady = virtual_start;
  WallTime wall_at_start;  // moved by jump_wall
  TimerId last = 0;
  TimerId running = 0;
  std::thread::id runner;
  std::map<std::pair<SteadyTime, TimerId>, std::function<void()>> timers;
};

VirtualClock::VirtualClock(WallTime start) : state_(std::make_unique<State>()) {
  state_->wall_at_start = start;
}
VirtualClock::~VirtualClock() = default;

SteadyTime VirtualClock::steady() const noexcept {
  const std::lock_guard lock{state_->mutex};
  return state_->steady;
}

WallTime VirtualClock::wall() const noexcept {
  const std::lock_guard lock{state_->mutex};
  // From the whole way, not step by step, so that many steps below a microsecond add up.
  return state_->wall_at_start +
         std::chrono::floor<std::chrono::microseconds>(state_->steady - virtual_start);
}

Clock::TimerId VirtualClock::at(SteadyTime when, std::function<void()> callback) {
  const std::lock_guard lock{state_->mutex};
  const TimerId id = ++state_->last;
  state_->timers.emplace(std::pair{when, id}, std::move(callback));
  return id;
}

bool VirtualClock::cancel(TimerId timer) {
  State& state = *state_;
  std::unique_lock lock{state.mutex};
  if (std::erase_if(state.timers, [&](const auto& one) { return one.first.second == timer; }) > 0)
    return true;
  if (state.runner != std::this_thread::get_id())
    state.idle.wait(lock, [&] { return state.running != timer; });
  return false;
}

void VirtualClock::advance(std::chrono::nanoseconds by) {
  State& state = *state_;
  std::unique_lock lock{state.mutex};
  const auto until = add(state.steady, by);
  while (!state.timers.empty() && state.timers.begin()->first.first <= until) {
    const auto first = state.timers.begin();
    state.steady = std::max(state.steady, first->first.first);
    state.running = first->first.second;
    state.runner = std::this_thread::get_id();
    auto callback = std::move(first->second);
    state.timers.erase(first);
    lock.unlock();
    callback();
    callback = nullptr;
    lock.lock();
    state.running = 0;
    state.idle.notify_all();
  }
  state.steady = std::max(state.steady, until);
}

void VirtualClock::jump_wall(std::chrono::microseconds by) {
  const std::lock_guard lock{state_->mutex};
  state_->wall_at_start += by;
}

std::size_t VirtualClock::pending_timers() const {
  const std::lock_guard lock{state_->mutex};
  return state_->timers.size();
}

std::chrono::nanoseconds thread_cpu_time() noexcept { return time_of(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace sluice
