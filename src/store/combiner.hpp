/// Exact coalescing: calls made while one is under way travel together in the next.
///
/// No call waits for a batch to fill; a batch is what came while the last one was under way. Requests keep the order of
/// their calls, and so do the replies. The way in which leader and followers share one flight is that of flat combining
/// (Hendler, Incze, Shavit, Tzafrir, SPAA 2010), with a network in the middle.
#pragma once

#include <functional>
#include <memory>
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
  /// Called only while a caller waits, and never twice at once.
  using Send = std::function<Task<std::vector<Reply>>(std::vector<Request>)>;

  /// At most `largest` requests travel in one batch.
  Combiner(Driver* driver, std::size_t largest, Send send)
      : driver_(driver), shared_(std::make_shared<Shared>(largest, std::move(send))) {}

  Task<Reply> call(Request request) {
    Entry entry{std::move(request), driver_};
    if (shared_->enqueue(entry)) spawn(flush(shared_));
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

  /// Outlives the Combiner: the last caller may destroy it as soon as it has its reply, while flush() still looks for
  /// the next batch.
  struct Shared {
    Shared(std::size_t most, Send sender) : largest(most), send(std::move(sender)) {}

    /// True: nobody is sending, so the caller must.
    bool enqueue(Entry& entry) {
      const std::lock_guard lock{mutex};
      waiting.push_back(&entry);
      return !std::exchange(sending, true);
    }

    /// The next batch; empty, and not sending any more, when nobody waits.
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

    const std::size_t largest;
    const Send send;
    std::mutex mutex;
    std::vector<Entry*> waiting;
    bool sending = false;
  };

  static Task<void> flush(std::shared_ptr<Shared> shared) {
    for (auto batch = shared->take(); !batch.empty(); batch = shared->take()) {
      std::vector<Request> requests;
      requests.reserve(batch.size());
      for (Entry* const entry : batch) requests.push_back(std::move(entry->request));
      std::vector<Reply> replies;
      std::exception_ptr error;
      try {
        auto sent = shared->send(std::move(requests));
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
  const std::shared_ptr<Shared> shared_;
};

}  // namespace sluice
