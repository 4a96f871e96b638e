/// A thread that waits in Task::get(): the coroutines it has to resume, the event it sleeps on, and
/// what it drives.
///
/// Waiters are pooled and never freed: a thread that completes a Completion may still be inside
/// wake() when the waiting thread has gone on. It then wakes another thread for nothing, instead of
/// touching freed memory. Every wait tolerates that.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/event.hpp"
#include "sluice/task.hpp"

namespace sluice {

class Waiter {
 public:
  /// This thread's waiter while it is inside get(); null elsewhere, and while it resumes coroutines
  /// that no thread waits for.
  static Waiter* current() noexcept;

  /// Any thread: `completion` is complete, its coroutine is to be resumed here.
  void post(Completion& completion) noexcept;
  /// Whether coroutines are to be resumed here. REQUIRES: on its own thread.
  bool has_posted() const noexcept { return ready_ || posted_.load(std::memory_order_acquire); }
  /// Any thread: look again.
  void wake() noexcept { event_.set(); }

  /// True when there is something to do on this thread, so a driver has to return.
  bool is_woken() const noexcept { return event_.is_set(); }
  /// For drivers that have nothing to do themselves.
  Event& event() noexcept { return event_; }
  /// For drivers that sleep in poll(): an eventfd to poll beside their own descriptors while the
  /// event watches it (Event::watch). This thread's alone; made when first asked for; -1 when the
  /// process has no descriptor left.
  int wake_descriptor() noexcept;

  /// One step of the loop in get(): resumes one coroutine that was posted, else drives or sleeps.
  /// May return without having done anything.
  void run_once();

  /// Whether this thread would drive `driver` for a completion that it awaits now. REQUIRES: on its
  /// own thread.
  bool would_drive(const Driver& driver) const noexcept { return !driver_ || driver_ == &driver; }
  /// A completion of `driver` is awaited. True: this thread drives for it, until stop_driving().
  bool start_driving(Driver& driver) noexcept;
  /// REQUIRES: start_driving() was true for one more completion than this was called for.
  void stop_driving() noexcept;

  /// The locks that this thread is inside by lock(). A coroutine that no thread waits for must not
  /// suspend inside of one: it may go on in another thread.
  static int& locks_of_this_thread() noexcept { return locks_; }
  static void check_suspension();

  /// Makes `waiter` the current one of this thread for a scope. Null: coroutines that no thread
  /// waits for run in it.
  class Scope {
   public:
    explicit Scope(Waiter* waiter) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Waiter* const before_;
    const int locks_before_;
  };

  /// This thread's own waiter, whether it waits or not.
  static Waiter& of_this_thread();

 private:
  inline static thread_local int locks_ = 0;
  inline static thread_local int outer_locks_ = 0;  // of what runs around the coroutine

  Event event_;
  std::atomic<Completion*> posted_{nullptr};
  Completion* ready_ = nullptr;  // taken from posted_, oldest first; this thread's alone
  Driver* driver_ = nullptr;     // what is driven while waiting: the first one registered
  std::size_t driven_ = 0;       // how many completions wait for it
  // Never closed, as the waiter is never freed: a late set() may still write to it.
  int wake_descriptor_ = -1;
  unsigned forks_ = 0;  // fork_count() when it was made: a child must not share it with its parent
};

/// Awaits the reply to a call that may be sent on, in the order of its thread's calls: also where
/// the reply is there already, behind the coroutines that were completed before and have yet to go
/// on here.
struct InTurn {
  Completion& completion;

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> coroutine) const noexcept {
    if (completion.await_suspend(coroutine)) return true;
    Waiter* const waiter = Waiter::current();
    if (!waiter || !waiter->has_posted()) return false;
    waiter->post(completion);
    return true;
  }
  void await_resume() const noexcept {}
};

}  // namespace sluice
