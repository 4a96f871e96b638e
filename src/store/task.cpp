#include "sluice/task.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "base/event.hpp"
#include "base/process.hpp"
#include "sluice/error.hpp"
#include "sluice/log.hpp"
#include "sluice/when_all.hpp"
#include "store/waiter.hpp"

namespace sluice {
namespace {

thread_local Waiter* current_waiter = nullptr;

/// Waiters that no thread owns. Never destroyed; see waiter.hpp.
struct Pool {
  std::mutex mutex;
  std::vector<Waiter*> free;
};

Pool& pool() {
  static auto* const all = new Pool;
  return *all;
}

/// Takes a Waiter for the life of a thread.
class Lease {
 public:
  Lease() {
    Pool& all = pool();
    const std::lock_guard lock{all.mutex};
    if (all.free.empty()) {
      waiter_ = new Waiter;
    } else {
      waiter_ = all.free.back();
      all.free.pop_back();
    }
  }
  ~Lease() {
    Pool& all = pool();
    const std::lock_guard lock{all.mutex};
    all.free.push_back(waiter_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Waiter& waiter() const noexcept { return *waiter_; }

 private:
  Waiter* waiter_;
};

}  // namespace

Waiter* Waiter::current() noexcept { return current_waiter; }

Waiter& Waiter::of_this_thread() {
  thread_local const Lease lease;
  return lease.waiter();
}

Waiter::Scope::Scope(Waiter* waiter) noexcept : before_(std::exchange(current_waiter, waiter)) {}
Waiter::Scope::~Scope() { current_waiter = before_; }

void Waiter::post(Completion& completion) noexcept {
  completion.next_ = posted_.load(std::memory_order_relaxed);
  while (!posted_.compare_exchange_weak(completion.next_, &completion, std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
  event_.set();
}

int Waiter::wake_descriptor() noexcept {
  if (wake_descriptor_ < 0 || forks_ != fork_count()) {
    wake_descriptor_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    forks_ = fork_count();
  }
  return wake_descriptor_;
}

void Waiter::start_driving(Driver& driver) noexcept {
  if (driven_ == 0) driver_ = &driver;
  if (driver_ == &driver) ++driven_;
}

void Waiter::stop_driving(const Driver& driver) noexcept {
  if (driver_ == &driver && driven_ > 0 && --driven_ == 0) driver_ = nullptr;
}

void Waiter::run_once() {
  if (!ready_ && event_.take()) {
    Completion* newest = posted_.exchange(nullptr, std::memory_order_acquire);
    while (newest) {  // the list is last in, first out: turn it round
      Completion* const older = newest->next_;
      newest->next_ = ready_;
      ready_ = newest;
      newest = older;
    }
    if (!ready_)
      return;  // woken for another reason: the caller looks what has changed before anybody sleeps
               // again
  }
  if (ready_) {
    Completion& completion = *ready_;
    ready_ = completion.next_;
    if (completion.driver_) stop_driving(*completion.driver_);
    completion.coroutine_.resume();  // `completion` may be gone after this
  } else if (driver_) {
    driver_->drive(*this);
  } else {
    event_.wait();
  }
}

bool Completion::await_suspend(std::coroutine_handle<> coroutine) noexcept {
  coroutine_ = coroutine;
  waiter_ = Waiter::current();
  Waiter* const waiter = waiter_;
  Driver* const driver = driver_;
  if (waiter && driver) waiter->start_driving(*driver);
  if (state_.fetch_or(awaited, std::memory_order_acq_rel) & completed) {
    if (waiter && driver) waiter->stop_driving(*driver);
    return false;
  }
  return true;
}

bool Completion::complete() noexcept {
  const unsigned before = state_.fetch_or(completed, std::memory_order_acq_rel);
  if (before & completed) return false;
  if (before & awaited) {
    if (waiter_) {
      waiter_->post(*this);
    } else {
      const Waiter::Scope no_waiter{nullptr};
      coroutine_.resume();
    }
  }
  return true;
}

namespace detail {

void PromiseBase::end() noexcept {
  const auto continuation = continuation_;
  Waiter* const waiter = waiter_;
  if (arrivals_.fetch_add(1, std::memory_order_acq_rel) == 0) return;
  if (continuation) {
    continuation.resume();
  } else if (waiter) {
    waiter->wake();
  }
}

void run_to_end(PromiseBase& promise, std::coroutine_handle<> coroutine) {
  if (const char* const duty = NoBlocking::duty_of_this_thread())
    throw Error{Errc::bad_argument,
                std::string{"Task::get() would block the thread that "} + duty +
                    ": co_await the Task, or go to a thread of your own before, by co_await "
                    "resume_on(executor)"};
  Waiter& waiter = Waiter::of_this_thread();
  const Waiter::Scope scope{&waiter};
  if (!promise.start(coroutine, {}, &waiter)) return;
  while (!promise.has_ended()) waiter.run_once();
}

void warn_of_unstarted(std::coroutine_handle<> coroutine) noexcept try {
  // g++ and clang let a frame begin with the address of the coroutine's code.
  const void* const place = *static_cast<void* const*>(coroutine.address());
  static std::mutex mutex;
  static auto& told =
      *new std::vector<const void*>;  // never destroyed, as tasks may outlive main()
  {
    const std::lock_guard lock{mutex};
    if (std::ranges::find(told, place) != told.end()) return;
    told.push_back(place);
  }
  log(LogLevel::warning,
      "a Task was dropped before it was awaited, so that its result is lost, and all that it had "
      "not begun is not done: co_await it, or call its get()");
} catch (...) {  // no memory for a message
}

}  // namespace detail

namespace {

/// A coroutine without an owner; it frees itself at its end.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

void report(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    log(LogLevel::error, failure.what());
  } catch (...) {
    log(LogLevel::error, "a background task failed with something that is no std::exception");
  }
}

Detached run_detached(Task<void> task, std::function<void(std::exception_ptr)> failed) {
  std::exception_ptr error;
  try {
    co_await task;
  } catch (...) {
    error = std::current_exception();
  }
  if (!error) co_return;
  if (failed) {
    failed(error);
  } else {
    report(error);
  }
}

/// Counts down the tasks of a when_all.
struct Gate {
  std::atomic<std::size_t> left;
  Completion all{nullptr};
  std::mutex mutex;
  std::exception_ptr first;
};

Detached run_counted(Task<void>& task, Gate& gate) {
  try {
    co_await task;
  } catch (...) {
    const std::lock_guard lock{gate.mutex};
    if (!gate.first) gate.first = std::current_exception();
  }
  if (gate.left.fetch_sub(1, std::memory_order_acq_rel) == 1) gate.all.complete();
}

}  // namespace

void spawn(Task<void> task, std::function<void(std::exception_ptr)> failed) {
  const Waiter::Scope no_waiter{nullptr};
  run_detached(std::move(task), std::move(failed));
}

Task<void> when_all(std::vector<Task<void>> tasks) {
  if (tasks.empty()) co_return;
  Gate gate{.left = tasks.size()};
  for (auto& task : tasks) run_counted(task, gate);
  co_await gate.all;
  if (gate.first) std::rethrow_exception(gate.first);
}

Task<bool> wait_until(Completion& completion, Clock& clock, SteadyTime deadline) {
  if (completion.is_complete()) co_return true;
  if (clock.steady() >= deadline) co_return !completion.complete();
  if (deadline == SteadyTime::max()) {
    co_await completion;
    co_return true;
  }
  std::atomic<bool> expired{false};
  const auto timer = clock.at(deadline, [&] {
    expired.store(true, std::memory_order_release);
    if (!completion.complete()) expired.store(false, std::memory_order_release);
  });
  co_await completion;
  const bool in_time = clock.cancel(timer) || !expired.load(std::memory_order_acquire);
  co_return in_time;
}

Task<void> sleep_until(Clock& clock, SteadyTime deadline) {
  if (clock.steady() >= deadline) co_return;
  Completion done;
  clock.at(deadline, [&done] { done.complete(); });
  co_await done;
}

}  // namespace sluice
