/// Who listens to which channel, and to the coming back of the connection. The handlers of one
/// channel share one subscription.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
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

  /// Later ones have larger numbers.
  std::uint64_t number() const noexcept { return number_; }
  static std::uint64_t newest() noexcept { return numbers; }

  /// Calls it, unless it was ended. What it throws is logged.
  void call(const Message& message) {
    call(message, [] { return true; });
  }
  /// The same if `is_due`, which is asked in turn with the calls: so they come in the order of what
  /// it decides by.
  void call(const Message& message, const std::function<bool()>& is_due);
  /// Afterwards it is not called any more, and is not being called (unless by this very thread).
  void end();

 private:
  static inline std::atomic<std::uint64_t> numbers{0};

  const MessageHandler function_;
  const std::uint64_t number_ = ++numbers;
  std::mutex mutex_;
  std::condition_variable idle_;
  bool ended_ = false;
  std::thread::id caller_;
};

/// Whom a Link tells what comes unasked. Called without a lock of the Link but for any(), by the
/// thread that reads, or by the reactor's.
class Hearer {
 public:
  enum class Kind : bool { classic, sharded };  ///< PUBLISH, SPUBLISH

  virtual ~Hearer() = default;
  /// Whether the connection is wanted, and may bring messages.
  virtual bool any() const noexcept = 0;
  /// What a new connection has to subscribe with its greeting.
  virtual std::vector<std::string> confirmed() const = 0;
  /// The server has subscribed it.
  virtual void confirm(Kind kind, const std::string& channel) = 0;
  /// It was subscribed before; the greeting of a new connection was refused it.
  virtual void refused(const std::string& /*channel*/, const std::string& /*why*/) {}
  virtual void deliver(Kind kind, const Message& message) = 0;
  virtual void deliver_gap(const std::vector<std::string>& channels) = 0;
  /// The shared connection was lost, and there is a new one.
  virtual void tell_reconnected() = 0;

  // What the nodes of a cluster tell.
  /// Why this node is not to be used; empty: it is. Called with the lock of the Link.
  virtual std::string refuse_node(const std::string& /*id*/) const { return {}; }
  /// The server has ended the subscription, asked or not: the channel's slot is another node's.
  virtual void ended(Kind /*kind*/, const std::string& /*channel*/) {}
  /// A connection was lost, or could not be made. Of the shared one if not `is_listener`.
  virtual void lost(bool /*is_listener*/) {}
  virtual void connected(bool /*is_listener*/) {}
  /// A call for a key in this slot waits for a connection: a new one, or the first of a lost one.
  virtual void waits(int /*slot*/) {}
};

/// Threads: any. Handlers are called without a lock of this class, by the thread that reads.
class Channels final : public Hearer {
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

  /// Of a channel whose handlers hear nothing any more: to be subscribed anew.
  std::function<void(const std::string& channel, const std::string& why)> on_refused;

  void confirm(Kind kind, const std::string& channel) override;
  void refused(const std::string& channel, const std::string& why) override;
  /// Somebody listens, and the server has not confirmed it.
  bool is_silent(const std::string& channel) const;
  std::vector<std::string> confirmed() const override;
  bool any() const noexcept override { return count_.load(std::memory_order_relaxed) != 0; }

  void deliver(Kind kind, const Message& message) override;
  void deliver_gap(const std::vector<std::string>& channels) override;
  void tell_reconnected() override;

 private:
  using Handlers = std::map<std::uint64_t, std::shared_ptr<Handler>>;  // by their numbers
  struct Channel {
    Handlers handlers;
    bool confirmed = false;
  };

  bool erase(const std::string& channel, const Handler& handler);
  /// Calls those of `handlers()`, which is asked with the mutex held and may be null, that are no
  /// newer than this call.
  template <class Find>
  void call_each(const Message& message, Find handlers);

  mutable std::mutex mutex_;
  std::map<std::string, Channel, std::less<>> channels_;
  Handlers watchers_;                  // of the connection
  std::atomic<std::size_t> count_{0};  // of channels_
};

}  // namespace sluice::redis
