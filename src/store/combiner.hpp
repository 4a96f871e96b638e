/// Exact coalescing: calls made while one is under way travel together in the next.
///
/// No call waits for a batch to fill; a batch is what came while the last one was under way.
/// Requests keep the order of their calls, and so do the replies. The way in which leader and
/// followers share one batch is that of flat combining (Hendler, Incze, Shavit, Tzafrir, SPAA
/// 2010), with a network in the middle.
///
/// A batch that is answered at once, as by the embedded engine, keeps the leader's thread. So that
/// no thread sends for its followers for ever, it hands the lead to the next waiting thread after
/// `most_in_a_row` such batches.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "sluice/store.hpp"
#include "store/reply_error.hpp"
#include "store/waiter.hpp"

namespace sluice {

/// A caller's Result is made of its own reply, which may throw: that fails no other caller.
template <class Request, class Reply, class Result = Reply>
class Combiner {
 public:
  /// Sends a batch; as many replies as requests, in their order. An exception goes to every caller
  /// of the batch. Called only while a caller waits, and never twice at once.
  using Send = std::function<Task<std::vector<Reply>>(std::vector<Request>)>;

  static constexpr int most_in_a_row = 32;

  /// At most `largest` requests travel in one batch. REQUIRES: largest > 0.
  Combiner(Driver* driver, std::size_t largest, Send send)
      : driver_(driver), shared_(std::make_shared<Shared>(largest, std::move(send))) {}

  Task<Result> call(Request request) {
    if (forks_ != fork_count()) throw closed_by_fork();  // the sender may be a thread of the parent
    Entry entry{std::move(request), driver_};
    if (shared_->enqueue(entry)) lead(shared_);
    co_await entry.woken;
    if (entry.leads) {
      lead(shared_);
      co_await entry.answered;
    }
    if (entry.error) std::rethrow_exception(entry.error);
    // NOLINTNEXTLINE(*-unchecked-optional-access): it is answered, and not by an error
    co_return static_cast<Result>(std::move(*entry.reply));
  }

  /// Calls made while it lives, by whichever thread, travel together at its end. Null: they wait
  /// for a batch that is under way, or for another thread's gathering. Whoever holds it must not
  /// wait for such a call.
  std::shared_ptr<void> gather() {
    if (!shared_->begin_sending()) return nullptr;
    return {shared_.get(), [shared = shared_](void*) { lead(shared); }};
  }

 private:
  struct Entry {
    Entry(Request&& asked, Driver* driver)
        : request(std::move(asked)), woken(driver), answered(driver) {}
    void answer() noexcept {
      (leads ? answered : woken).complete();
    }  // the entry may be gone afterwards

    Request request;
    std::optional<Reply> reply;
    std::exception_ptr error;
    // A thread waits for it, and can lead without being nested here.
    const bool of_thread = Waiter::current() != nullptr;
    bool leads = false;  // it was woken to send, and is answered later
    Completion woken;
    Completion answered;
  };

  /// Awaits the task of a batch, and tells whether that suspended the coroutine.
  struct Sending {
    explicit Sending(Task<std::vector<Reply>>& task) : awaiter(task.operator co_await()) {}
    bool await_ready() const noexcept { return awaiter.await_ready(); }
    bool await_suspend(std::coroutine_handle<> coroutine) {
      suspended = true;  // before the fact: afterwards another thread may have gone on
      if (awaiter.await_suspend(coroutine)) return true;
      suspended = false;
      return false;
    }
    std::vector<Reply> await_resume() { return awaiter.await_resume(); }

    decltype(std::declval<Task<std::vector<Reply>>&>().operator co_await()) awaiter;
    bool suspended = false;
  };

  /// Outlives the Combiner: the last caller may destroy it as soon as it has its reply, while
  /// flush() still looks for the next batch.
  struct Shared {
    Shared(std::size_t most, Send sender) : largest(most), send(std::move(sender)) {}

    /// True: no caller is sending, so this one must.
    bool enqueue(Entry& entry) {
      const std::lock_guard lock{mutex};
      waiting.push_back(&entry);
      return !std::exchange(sending, true);
    }

    /// False: a caller is sending already.
    bool begin_sending() {
      const std::lock_guard lock{mutex};
      return !std::exchange(sending, true);
    }

    /// The next batch; empty, and not sending any more, when no caller waits.
    std::vector<Entry*> take() {
      const std::lock_guard lock{mutex};
      std::vector<Entry*> batch;
      if (waiting.size() <= largest) {
        batch.swap(waiting);
      } else {
        const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(largest);
        batch.assign(waiting.begin(), end);
        waiting.erase(waiting.begin(), end);
      }
      if (batch.empty()) sending = false;
      return batch;
    }

    /// Makes the next thread that waits the leader. False: there is none.
    bool hand_over() {
      std::unique_lock lock{mutex};
      const auto next = std::ranges::find_if(
          waiting, [](const Entry* entry) { return entry->of_thread && !entry->leads; });
      if (next == waiting.end()) return false;
      Entry& leader = **next;
      leader.leads = true;
      lock.unlock();
      leader.woken.complete();
      return true;
    }

    /// There is no memory to send anything.
    void fail_all(const std::exception_ptr& why) noexcept {
      std::vector<Entry*> failed;
      {
        const std::lock_guard lock{mutex};
        failed.swap(waiting);
        sending = false;
      }
      for (Entry* const entry : failed) {
        entry->error = why;
        entry->answer();
      }
    }

    const std::size_t largest;
    const Send send;
    std::mutex mutex;
    std::vector<Entry*> waiting;
    bool sending = false;
  };

  static void lead(const std::shared_ptr<Shared>& shared) noexcept {
    const auto fail = [shared](const std::exception_ptr& why) { shared->fail_all(why); };
    try {
      spawn(flush(shared), fail);
    } catch (...) {
      fail(std::current_exception());
    }
  }

  static Task<void> flush(std::shared_ptr<Shared> shared) {
    int in_a_row = 0;
    for (auto batch = shared->take(); !batch.empty(); batch = shared->take()) {
      std::vector<Reply> replies;
      std::exception_ptr error;
      try {
        std::vector<Request> requests;
        requests.reserve(batch.size());
        for (Entry* const entry : batch) requests.push_back(std::move(entry->request));
        auto sent = shared->send(std::move(requests));
        Sending sending{sent};
        replies = co_await sending;
        in_a_row = sending.suspended ? 0 : in_a_row + 1;
        if (replies.size() != batch.size())
          throw Error{Errc::protocol, "a batch was answered with another number of replies",
                      Effect::unknown};
      } catch (...) {
        error = std::current_exception();
      }
      for (std::size_t i = 0; i < batch.size(); ++i) {
        Entry& entry = *batch[i];
        if (error) {
          entry.error = error;
        } else {
          entry.reply.emplace(std::move(replies[i]));
        }
        entry.answer();
      }
      if (in_a_row >= most_in_a_row && shared->hand_over()) co_return;
    }
  }

  Driver* const driver_;
  const unsigned forks_ = fork_count();
  const std::shared_ptr<Shared> shared_;
};

}  // namespace sluice
