/// Who listens to which channel, and to the coming back of the connection. The handlers of one
/// channel share one subscription.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::redis {

/// One handler, never called twice at once.
class Handler {
 public:
  explicit Handler(MessageHandler function) : function_(std::move(function)) {}

  /// Calls it, unless it was ended. What it throws is logged.
  void call(const Message& message);
  /// Afterwards it is not called any more, and is not being called (unless by this very thread).
  void end();

 private:
  const MessageHandler function_;
  std::mutex mutex_;
  std::condition_variable idle_;
  bool ended_ = false;
  std::thread::id caller_;
};

/// Threads: any. Handlers are called without a lock of this class, by the thread that reads.
class Channels {
 public:
  /// False: the channel is subscribed and confirmed already, there is nothing to send.
  bool add(const std::string& channel, std::shared_ptr<Handler> handler);
  /// Runs `unsubscribe` inside the lock when that was the last handler, so that a new listener's
  /// SUBSCRIBE is sent after it.
  template <class Unsubscribe>
  void remove(const std::string& channel, const Handler& handler, Unsubscribe unsubscribe) {
    const std::lock_guard lock{mutex_};
    if (erase(channel, handler)) unsubscribe();
  }

  void add_watcher(std::shared_ptr<Handler> handler);
  void remove_watcher(const Handler& handler);

  void confirm(const std::string& channel);
  /// What a new connection has to subscribe.
  std::vector<std::string> confirmed() const;
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

  void deliver(const Message& message);
  void deliver_gap(const std::vector<std::string>& channels);
  void tell_reconnected();

 private:
  using Handlers = std::vector<std::shared_ptr<Handler>>;
  struct Channel {
    std::shared_ptr<const Handlers>
        handlers;  // replaced, not changed: a delivery keeps the one it began with
    bool confirmed = false;
  };

  bool erase(const std::string& channel, const Handler& handler);
  std::shared_ptr<const Handlers> handlers_of(const std::string& channel) const;

  mutable std::mutex mutex_;
  std::map<std::string, Channel, std::less<>> channels_;
  Handlers watchers_;                  // of the connection
  std::atomic<std::size_t> count_{0};  // of channels_
};

}  // namespace sluice::redis
