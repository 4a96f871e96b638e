/// Exact coalescing: calls made while one is under way travel together in the next.
///
/// No call waits for a batch to fill; a batch is what came while the last one was under way. Requests keep the order of
/// their calls, and so do the replies. The way in which leader and followers share one flight is that of flat combining
/// (Hendler, Incze, Shavit, Tzafrir, SPAA 2010), with a network in the middle.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/store.hpp"

namespace sluice {

template <class Request, class Reply>
class Combiner {
 public:
  /// Sends a batch; as many replies as requests, in their order. An exception goes to every caller of the batch.
  using Send = std::function<Task<std::vector<Reply>>(std::vector<Request>)>;

  /// At most `largest` requests travel in one batch.
  Combiner(Driver* driver, std::size_t largest, Send send)
      : driver_(driver), largest_(largest), send_(std::move(send)) {}

  Task<Reply> call(Request request) {
    Entry entry{std::move(request), driver_};
    if (enqueue(entry)) spawn(flush());
    co_await entry.done;
    if (entry.error) std::rethrow_exception(entry.error);
    co_return std::move(*entry.reply);
  }

 private:
  struct Entry {
    Entry(Request&& asked, Driver* driver) : request(std::move(asked)), done(driver) {}
    Request request;
    std::optional<Reply> reply;
    std::exception_ptr error;
    Completion done;
  };

  /// True: nobody is sending, so the caller must.
  bool enqueue(Entry& entry) {
    const std::lock_guard lock{mutex_};
    waiting_.push_back(&entry);
    return !std::exchange(sending_, true);
  }

  /// The next batch; empty and not sending any more when nobody waits.
  std::vector<Entry*> take() {
    const std::lock_guard lock{mutex_};
    std::vector<Entry*> batch;
    if (waiting_.size() <= largest_) {
      batch.swap(waiting_);
    } else {
      const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(largest_);
      batch.assign(waiting_.begin(), end);
      waiting_.erase(waiting_.begin(), end);
    }
    if (batch.empty()) sending_ = false;
    return batch;
  }

  Task<void> flush() {
    for (auto batch = take(); !batch.empty(); batch = take()) {
      std::vector<Request> requests;
      requests.reserve(batch.size());
      for (Entry* const entry : batch) requests.push_back(std::move(entry->request));
      std::vector<Reply> replies;
      std::exception_ptr error;
      try {
        auto sent = send_(std::move(requests));
        replies = co_await sent;
        if (replies.size() != batch.size())
          throw Error{Errc::protocol, "a batch was answered with another number of replies", Effect::unknown};
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
        entry.done.complete();  // the entry may be gone after this
      }
    }
  }

  Driver* const driver_;
  const std::size_t largest_;
  const Send send_;
  std::mutex mutex_;
  std::vector<Entry*> waiting_;
  bool sending_ = false;
};

}  // namespace sluice
