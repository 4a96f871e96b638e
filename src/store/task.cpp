#include "sluice/task.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "base/callback.hpp"
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

Waiter& Waiter::of_this_thread() { return sluice::of_this_thread<Lease>().waiter(); }

Waiter::Scope::Scope(Waiter* waiter) noexcept
    : before_(std::exchange(current_waiter, waiter)),
      locks_before_(std::exchange(outer_locks_, locks_)) {}
Waiter::Scope::~Scope() {
  current_waiter = before_;
  outer_locks_ = locks_before_;
}

void Waiter::check_suspension() {
  if (current_waiter || locks_ <= outer_locks_) return;
  throw Error{Errc::bad_argument,
              "a coroutine must not be inside a lock by lock(), as of std::scoped_lock, at a "
              "co_await: it may go on in another thread, which cannot unlock; use co_await "
              "mutex.acquire(), or wait for the coroutine in Task::get()"};
}

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

bool Waiter::start_driving(Driver& driver) noexcept {
  if (!would_drive(driver)) return false;
  driver_ = &driver;
  ++driven_;
  return true;
}

void Waiter::stop_driving() noexcept {
  if (--driven_ == 0) driver_ = nullptr;
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
    if (completion.driver_) stop_driving();
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
  const bool is_driven = waiter && driver_ && waiter->start_driving(*driver_);
  // Whoever drives another one does not begin with this one's when that is done.
  if (!is_driven) driver_ = nullptr;
  if (state_.fetch_or(awaited, std::memory_order_acq_rel) & completed) {
    if (is_driven) waiter->stop_driving();
    driver_ = nullptr;
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
      // The thread is in the middle of something else: of a release, say, or of reading replies.
      const char* const duty = NoBlocking::duty_of_this_thread();
      const NoBlocking busy{duty ? duty : "goes on with a coroutine that no thread waits for"};
      const Waiter::Scope no_waiter{nullptr};
      coroutine_.resume();
    }
  }
  return true;
}

namespace detail {

namespace {

/// In place of what is told at the drop: it has been dropped.
std::function<void()>* was_dropped() noexcept {
  alignas(std::function<void()>) static std::byte mark;  // its address alone is used
  return reinterpret_cast<std::function<void()>*>(&mark);
}

}  // namespace

void PromiseBase::end(std::coroutine_handle<> self) noexcept {
  const auto continuation = continuation_;
  Waiter* const waiter = waiter_;
  switch (arrivals_.fetch_add(1, std::memory_order_acq_rel)) {
    case 0:
    case dropped: return;  // start() has not returned
    case dropped + 1: return self.destroy();
    default: break;
  }
  if (continuation) {
    continuation.resume();
  } else if (waiter) {
    waiter->wake();
  }
}

bool PromiseBase::leave_running(std::coroutine_handle<> self) noexcept {
  const auto before = arrivals_.fetch_add(1, std::memory_order_acq_rel);
  if (before == dropped + 1) self.destroy();  // and the coroutine that has awaited it is gone
  return before != 1;
}

bool PromiseBase::drop_running() noexcept {
  const std::unique_ptr<std::function<void()>> tell{
      on_drop_.exchange(was_dropped(), std::memory_order_acq_rel)};
  const bool ended = (arrivals_.fetch_or(dropped, std::memory_order_acq_rel) & both) == both;
  if (tell && !ended) call_user("what is told of a dropped Task", *tell);
  return ended;
}

void PromiseBase::on_drop(std::function<void()> tell) {
  auto mine = std::make_unique<std::function<void()>>(std::move(tell));
  auto* before = on_drop_.load(std::memory_order_acquire);
  do {
    if (before == was_dropped()) return (*mine)();
  } while (!on_drop_.compare_exchange_weak(before, mine.get(), std::memory_order_acq_rel));
  delete before;
  mine.release();
}

void PromiseBase::forget_on_drop() noexcept {
  if (auto* const tell = on_drop_.load(std::memory_order_acquire); tell != was_dropped())
    delete tell;
}

void check_suspension() { Waiter::check_suspension(); }

void run_to_end(PromiseBase& promise, std::coroutine_handle<> coroutine) {
  NoBlocking::check("Task::get()");
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

Detached run_detached(Task<void> task, std::function<void(std::exception_ptr)> failed) {
  std::exception_ptr error;
  try {
    co_await task;
  } catch (...) {
    error = std::current_exception();
  }
  if (!error) co_return;
  if (failed) {
    call_user("what spawn() was given for failures", [&] { failed(error); });
  } else {
    report_thrown("a background task", error);
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

/// One coroutine on its way to the executor's thread.
struct ResumeOn::Passage {
  enum State { leaving, on_its_way, arrived, dropped };

  explicit Passage(std::coroutine_handle<> traveller) : coroutine(traveller) {}

  /// True: the coroutine is the caller's to resume.
  bool arrive(State as) noexcept {
    State before = state.load(std::memory_order_acquire);
    while (before < arrived)
      if (state.compare_exchange_weak(before, as, std::memory_order_acq_rel))
        return as == arrived || before == on_its_way;
    return false;
  }
  void go_on() const {
    const Waiter::Scope no_waiter{nullptr};
    coroutine.resume();
  }

  const std::coroutine_handle<> coroutine;
  std::atomic<State> state{leaving};
};

bool ResumeOn::await_suspend(std::coroutine_handle<> coroutine) {
  struct Work {
    explicit Work(std::shared_ptr<Passage> one) : passage(std::move(one)) {}
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
      if (passage->arrive(Passage::dropped)) passage->go_on();
    }
    const std::shared_ptr<Passage> passage;
  };
  const auto passage = std::make_shared<Passage>(coroutine);
  passage_ = passage;
  const auto executor = std::move(executor_);  // `this` may be gone before the executor returns
  try {
    executor([work = std::make_shared<Work>(passage)] {
      if (work->passage->arrive(Passage::arrived)) work->passage->go_on();
    });
  } catch (...) {
    const auto before = passage->state.exchange(Passage::arrived, std::memory_order_acq_rel);
    if (before != Passage::arrived) throw;
    report_thrown("an executor that had run its work", std::current_exception());
    return true;
  }
  auto before = Passage::leaving;
  passage->state.compare_exchange_strong(before, Passage::on_its_way, std::memory_order_acq_rel);
  return before != Passage::dropped;
}

void ResumeOn::await_resume() const {
  if (passage_->state.load(std::memory_order_acquire) == Passage::dropped)
    throw Error{Errc::closed, "the executor dropped a coroutine that was to go on there"};
}

ResumeOn::~ResumeOn() {
  if (passage_) passage_->state.store(Passage::arrived, std::memory_order_release);
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
