/// One API for threads and coroutines: a verb returns a Task; `.get()` blocks the thread,
/// `co_await` suspends the coroutine.
///
/// A Task is lazy: it starts when it is awaited or got, and is used once. A Task that is dropped
/// unstarted does nothing, and the log says so. A coroutine that a thread waits for with `.get()`
/// always continues on that thread, and the thread does the I/O itself while it waits (see Driver).
/// A coroutine that no thread waits for (`spawn`) continues on the thread that completes what it
/// awaits: often the one that reads all replies of a Store. Blocking there would stop the Store for
/// every thread, so `.get()` throws there; `co_await` instead, or go to a thread of your own first:
///
///     auto held = co_await mutex.acquire();
///     co_await resume_on([&](auto work) { asio::post(pool, std::move(work)); });
///     write_the_file();  // may block
///
/// A Task may be dropped while it runs, as when the coroutine that awaits it is destroyed: it goes
/// on without a caller, as after `spawn`, and its result is dropped at its end, so that a hold is
/// given back. The acquire of a lock stops waiting then. What the Task refers to must live as long.
///
/// `co_await` of a Task throws Error{bad_argument} in a coroutine that is inside a lock by lock(),
/// as of std::scoped_lock, unless a thread waits for the coroutine in `.get()`: it may go on in
/// another thread, and that one cannot unlock. Use `acquire` there.
///
/// Threads: a Task belongs to one thread at a time.
#pragma once

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/clock.hpp"
#include "sluice/standard.hpp"

namespace sluice {

class Waiter;

/// Lets a thread that waits do the work it waits for, instead of sleeping until another thread has
/// done it.
class Driver {
 public:
  virtual ~Driver() = default;
  /// Works or sleeps until the waiter was woken. May return early.
  virtual void drive(Waiter& waiter) = 0;
};

/// One-shot signal: one coroutine awaits it, any thread completes it, before or after. It must live
/// until it was awaited and completed; usually it is a local of the coroutine.
class Completion {
 public:
  /// `driver` brings the completion about; null: it comes by itself.
  explicit Completion(Driver* driver = nullptr) noexcept : driver_(driver) {}
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  /// Resumes the coroutine: on the thread that waits for it in get(), else here and now.
  /// False: it was complete already. The object may be gone when this returns true.
  bool complete() noexcept;

  bool is_complete() const noexcept { return state_.load(std::memory_order_acquire) & completed; }
  bool await_ready() const noexcept { return is_complete(); }
  bool await_suspend(std::coroutine_handle<> coroutine) noexcept;
  void await_resume() const noexcept {}

 private:
  friend class Waiter;
  static constexpr unsigned completed = 1;
  static constexpr unsigned awaited = 2;

  std::atomic<unsigned> state_{0};
  Driver* driver_;  // once awaited: null where the waiter does not drive for this completion
  Waiter* waiter_ = nullptr;
  std::coroutine_handle<> coroutine_;
  Completion* next_ = nullptr;
};

template <class T>
class Task;

namespace detail {

/// What every Task's promise has: whom to resume at the end, and what was thrown.
class PromiseBase {
 public:
  PromiseBase() noexcept = default;
  PromiseBase(const PromiseBase&) = delete;
  PromiseBase& operator=(const PromiseBase&) = delete;
  ~PromiseBase() {
    if (on_drop_.load(std::memory_order_relaxed)) forget_on_drop();
  }

  std::suspend_always initial_suspend() const noexcept { return {}; }

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> coroutine) const noexcept {
      static_cast<PromiseBase&>(coroutine.promise()).end(coroutine);
    }
    void await_resume() const noexcept {}
  };
  Final final_suspend() const noexcept { return {}; }

  /// Starts `self`. True: it is still running, and resumes `continuation` or wakes `waiter` when it
  /// ends.
  bool start(std::coroutine_handle<> self, std::coroutine_handle<> continuation,
             Waiter* waiter = nullptr) {
    continuation_ = continuation;
    waiter_ = waiter;
    self.resume();
    if (arrivals_.load(std::memory_order_acquire) != 1) return leave_running(self);
    arrivals_.store(both, std::memory_order_relaxed);  // no other arrival follows
    return false;
  }
  bool has_ended() const noexcept {
    return (arrivals_.load(std::memory_order_acquire) & both) == both;
  }
  bool was_started() const noexcept { return continuation_ || waiter_; }
  void unhandled_exception() noexcept { error_ = std::current_exception(); }

  /// The Task is dropped. True: the frame can be destroyed now; else it goes on, and destroys
  /// itself at its end.
  bool drop() noexcept {
    return arrivals_.load(std::memory_order_acquire) == both || drop_running();
  }
  /// `tell` is called once, at the drop of the running Task; at once if it was dropped before.
  void on_drop(std::function<void()> tell);

 protected:
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // The end, and the return of start(), count one each: the second resumes the continuation.
  static constexpr unsigned both = 2;
  static constexpr unsigned dropped = 4;

  bool leave_running(std::coroutine_handle<> self) noexcept;
  bool drop_running() noexcept;
  void forget_on_drop() noexcept;
  void end(std::coroutine_handle<> self) noexcept;

  std::exception_ptr error_;
  std::coroutine_handle<> continuation_;
  Waiter* waiter_ = nullptr;
  std::atomic<unsigned> arrivals_{0};
  std::atomic<std::function<void()>*> on_drop_{nullptr};
};

template <class T>
class Promise : public PromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <class U>
    requires std::convertible_to<U, T>
  void return_value(U&& value) { result_.emplace(std::forward<U>(value)); }
  T take() {
    rethrow();
    return std::move(*result_);  // NOLINT(*-unchecked-optional-access): it has ended
  }

 private:
  std::optional<T> result_;
};

template <>
class Promise<void> : public PromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const { rethrow(); }
};

/// Runs `coroutine` to its end on this thread; `promise` is its promise. Throws Error{bad_argument}
/// before it starts on a thread that must not block.
void run_to_end(PromiseBase& promise, std::coroutine_handle<> coroutine);

/// Throws Error{bad_argument} where the coroutine that is about to suspend must not.
void check_suspension();

/// Logs that a Task was dropped before it started; once for each coroutine function.
void warn_of_unstarted(std::coroutine_handle<> coroutine) noexcept;

/// What a Task holds when its value was there at once; void needs a stand-in.
template <class T>
using Ready = std::conditional_t<std::is_void_v<T>, std::nullptr_t, T>;

/// A result whose end undoes what the Task has done, as a hold's does: its type, or that in an
/// optional, names a type `must_be_kept`. The compiler warns where the result of get() is dropped.
template <class T>
inline constexpr bool must_be_kept = requires {
  typename T::must_be_kept;
};
template <class T>
inline constexpr bool must_be_kept<std::optional<T>> = must_be_kept<T>;

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  /// A Task that is finished already, without a coroutine.
  static Task ready(detail::Ready<T> value = {}) { return Task{std::move(value)}; }

  Task(Task&& other) noexcept
      : coroutine_(std::exchange(other.coroutine_, {})), ready_(std::move(other.ready_)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      coroutine_ = std::exchange(other.coroutine_, {});
      ready_ = std::move(other.ready_);
    }
    return *this;
  }
  ~Task() { destroy(); }

  /// Finished already, without a coroutine: get() gives its value.
  bool is_ready() const noexcept { return !coroutine_; }

  /// Blocks until the result is there; throws what the coroutine threw, and Error{bad_argument}
  /// (effect none) on a thread that reads replies or runs timers. REQUIRES: not used before.
  T get() { return take(); }
  [[nodiscard]] T get() requires detail::must_be_kept<T> { return take(); }

  auto operator co_await() noexcept {
    struct Awaiter {
      Task& task;
      bool await_ready() const noexcept { return !task.coroutine_; }
      bool await_suspend(std::coroutine_handle<> caller) {
        detail::check_suspension();
        return task.coroutine_.promise().start(task.coroutine_, caller);
      }
      T await_resume() {
        if (task.coroutine_) return task.coroutine_.promise().take();
        if constexpr (!std::is_void_v<T>) return std::move(*task.ready_);  // NOLINT(*optional*)
      }
    };
    return Awaiter{*this};
  }

 private:
  friend promise_type;
  explicit Task(Handle coroutine) noexcept : coroutine_(coroutine) {}
  explicit Task(detail::Ready<T>&& value) : ready_(std::move(value)) {}
  T take() {
    if (coroutine_) {
      detail::run_to_end(coroutine_.promise(), coroutine_);
      return coroutine_.promise().take();
    }
    if constexpr (!std::is_void_v<T>) return std::move(*ready_);
  }
  void destroy() noexcept {
    if (!coroutine_) return;
    auto& promise = coroutine_.promise();
    if (!promise.was_started()) {
      detail::warn_of_unstarted(coroutine_);
    } else if (!promise.drop()) {
      return;
    }
    coroutine_.destroy();
  }

  Handle coroutine_;
  std::optional<detail::Ready<T>> ready_;
};

template <class T>
Task<T> detail::Promise<T>::get_return_object() noexcept {
  return Task<T>{std::coroutine_handle<Promise>::from_promise(*this)};
}

inline Task<void> detail::Promise<void>::get_return_object() noexcept {
  return Task<void>{std::coroutine_handle<Promise>::from_promise(*this)};
}

/// Starts `task` and lets it go. Its failure goes to `failed`; without one it is logged as an
/// error.
void spawn(Task<void> task, std::function<void(std::exception_ptr)> failed = {});

/// Takes work and runs it once, soon, on a thread that may block.
using Executor = std::function<void(std::function<void()> work)>;

/// `co_await resume_on(executor)`: the coroutine continues where the executor runs its work. Throws
/// what the executor throws, and Error{closed} where it drops the work, in the thread that does so.
class ResumeOn {
 public:
  explicit ResumeOn(Executor executor) noexcept : executor_(std::move(executor)) {}
  ResumeOn(const ResumeOn&) = delete;
  ResumeOn& operator=(const ResumeOn&) = delete;
  /// A coroutine that is destroyed meanwhile is not resumed.
  ~ResumeOn();
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> coroutine);
  void await_resume() const;

 private:
  struct Passage;
  Executor executor_;
  std::shared_ptr<Passage> passage_;
};

inline ResumeOn resume_on(Executor executor) { return ResumeOn{std::move(executor)}; }

/// `co_await OnDrop{tell}` in a coroutine that returns a Task: `tell` is called if that Task is
/// dropped while it runs.
struct OnDrop {
  std::function<void()> tell;

  bool await_ready() const noexcept { return false; }
  template <class T>
  bool await_suspend(std::coroutine_handle<detail::Promise<T>> coroutine) {
    coroutine.promise().on_drop(std::move(tell));
    return false;
  }
  void await_resume() const noexcept {}
};

/// Waits for `completion` until `deadline` of `clock`. False: time was up first. After this returns
/// the completion may be gone.
Task<bool> wait_until(Completion& completion, Clock& clock, SteadyTime deadline);

/// Suspends until `deadline` of `clock`.
Task<void> sleep_until(Clock& clock, SteadyTime deadline);

}  // namespace sluice
