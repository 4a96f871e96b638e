/// How a waiter waits, and how many waiters are resumed.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lock/hold/owner.hpp"
#include "lock/hold/resource.hpp"
#include "sluice/error.hpp"
#include "sluice/store.hpp"
#include "sluice/task.hpp"
#include "store/reply_error.hpp"

namespace sluice::lock {

inline constexpr std::chrono::milliseconds for_ever = std::chrono::milliseconds::max();
/// A waiter looks at the lock again after this time even if it hears nothing.
inline constexpr std::chrono::milliseconds longest_rest = std::chrono::seconds{30};

/// Suspends until `call` is complete, until the time `until`, or until `stop` is requested.
Task<void> wait_or_stop(std::shared_ptr<Completion> call, Clock& clock, SteadyTime until,
                        std::stop_token stop);

/// The stop of a verb that waits, which is requested, too, when the verb's Task is dropped:
///
///     StopOrDrop stopping{stop};
///     stop = co_await stopping;
///
/// A thread that waits in get() cannot drop the Task, and is spared the cost.
class StopOrDrop {
 public:
  explicit StopOrDrop(std::stop_token stop) : token_(std::move(stop)) {}

  bool await_ready() const noexcept;
  template <class T>
  bool await_suspend(std::coroutine_handle<detail::Promise<T>> coroutine) {
    std::stop_source ended;
    on_stop_.emplace(std::exchange(token_, ended.get_token()),
                     [ended]() mutable { ended.request_stop(); });
    dropped_ = std::make_shared<std::atomic<bool>>(false);
    coroutine.promise().on_drop([ended, dropped = dropped_]() mutable {
      *dropped = true;
      ended.request_stop();
    });
    return false;
  }
  std::stop_token await_resume() const { return token_; }
  /// Nobody has what the verb gets.
  bool is_dropped() const noexcept { return dropped_ && *dropped_; }

 private:
  std::shared_ptr<std::atomic<bool>> dropped_;
  std::stop_token token_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

/// A waiter's patience with a server that is away: until its time is up it asks again, with pauses
/// of 20 ms to 1 s.
class Patience {
 public:
  Patience(Clock& clock, SteadyTime until) : clock_(clock), until_(until) {}

  bool lasts(const Error& failure) const { return is_outage(failure) && clock_.steady() < until_; }
  /// When to ask again.
  SteadyTime next() noexcept {
    return std::min(until_, clock_.steady() + std::exchange(pause_, std::min(pause_ * 2, longest)));
  }
  /// Waits until then, or until `stop`.
  Task<void> pause(std::stop_token stop) {
    return wait_or_stop(std::make_shared<Completion>(), clock_, next(), std::move(stop));
  }
  void renew() noexcept { pause_ = shortest; }

 private:
  static constexpr std::chrono::milliseconds shortest{20};
  static constexpr std::chrono::milliseconds longest{1000};

  Clock& clock_;
  const SteadyTime until_;
  std::chrono::milliseconds pause_ = shortest;
};

/// Asks until the server is there to answer. Throws what `ask` throws, an outage only at the end of
/// the patience or after `stop`.
template <class Ask>
auto wait_out(Patience patience, std::stop_token stop, Ask ask) -> decltype(ask()) {
  for (;;) {
    try {
      auto asked = ask();
      co_return co_await asked;
    } catch (const Error& failure) {
      if (!patience.lasts(failure) || stop.stop_requested()) throw;
    }
    co_await patience.pause(stop);
  }
}

/// The same for who wants to enter. Each question after the first is a request of its own, since
/// the last one was given up.
template <class Enter>
auto enter_patiently(Patience patience, std::stop_token stop, Identity who, Enter enter)
    -> decltype(enter(who)) {
  return wait_out(patience, std::move(stop),
                  [who = std::move(who), enter = std::move(enter), asked = false]() mutable {
                    if (std::exchange(asked, true)) who = who.with_request(new_request_id());
                    return enter(who);
                  });
}

/// Completes waiters one after another, not one inside another.
///
/// A completed coroutine runs at once. It may release its hold, and so complete the next waiter: a
/// thousand waiters would be a thousand frames on one stack. While a Trampoline is in scope on a
/// thread, `complete` only notes the waiter, and the end of the outermost Trampoline completes it.
class Trampoline {
 public:
  Trampoline() noexcept : outer_(current) {
    if (!outer_) current = this;
  }
  Trampoline(const Trampoline&) = delete;
  Trampoline& operator=(const Trampoline&) = delete;
  ~Trampoline() {
    if (outer_) return;
    for (std::size_t i = 0; i < due_.size(); ++i) {
      const auto next = std::move(due_[i]);
      next->complete();
    }
    current = nullptr;
  }

  static void complete(std::shared_ptr<Completion> waiter) {
    Trampoline trampoline;
    current->due_.push_back(std::move(waiter));
  }

 private:
  static inline thread_local Trampoline* current = nullptr;
  Trampoline* const outer_;
  std::vector<std::shared_ptr<Completion>> due_;
};

/// What a process of ours hears on a channel where programs that are not ours listen. Those are
/// counted by the scripts (lock/wait/queue, part strangers), so it listens to another one too.
using ListenerBesideStrangers = std::pair<Listener, Listener>;
Task<ListenerBesideStrangers> listen_beside_strangers(Store& store, std::string channel,
                                                      MessageHandler handler);

/// What `asked` answers by `until`. Nothing: it goes on without a caller, and its result is
/// dropped. It may refer to nothing that ends meanwhile.
template <class T>
Task<std::optional<T>> in_time(Task<T> asked, Store& store, SteadyTime until) {
  struct Answer {
    explicit Answer(Driver* driver) : done(driver) {}
    std::optional<T> value;
    std::exception_ptr failure;
    Completion done;
  };
  const auto answer = std::make_shared<Answer>(store.message_driver());
  constexpr auto keep = [](Task<T> what, std::shared_ptr<Answer> into) -> Task<void> {
    try {
      into->value = co_await what;
    } catch (...) {
      into->failure = std::current_exception();
    }
    into->done.complete();
  };
  spawn(keep(std::move(asked), answer));
  if (const bool came = co_await wait_until(answer->done, store.clock(), until); !came)
    co_return std::nullopt;
  if (answer->failure) std::rethrow_exception(answer->failure);
  co_return std::move(answer->value);
}

}  // namespace sluice::lock
