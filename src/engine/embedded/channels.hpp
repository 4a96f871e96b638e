/// Publish/subscribe inside the process.
///
/// Executions post their messages in order, under the engine's lock. The first thread that leaves
/// the lock delivers all of them, outside the lock. A handler may use the Store: the same thread
/// delivers what the handler publishes, after the handler has returned.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/core/context.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

/// Held by a shared_ptr: a Listener may outlive the Store.
class Channels : public std::enable_shared_from_this<Channels> {
 public:
  /// `first`: a message for this handler alone, before all others.
  Listener listen(std::string channel, MessageHandler handler, std::optional<Message> first = {});

  bool any() const noexcept { return has_handlers_.load(std::memory_order_acquire); }
  std::size_t receivers(std::string_view channel) const;
  std::vector<std::string> names() const;

  void post(std::vector<Context::Published>& messages);
  /// Where more than `most` wait, behind a handler that blocks, each channel gets a gap instead.
  void post(std::vector<Message> messages, std::size_t most);
  /// Returns when everything is delivered, or another thread is at it.
  void deliver();

 private:
  class Registration;
  using Handler = std::shared_ptr<const MessageHandler>;
  using Lock = std::unique_lock<std::mutex>;
  struct Posted {
    Message message;
    std::uint64_t only = 0;  ///< number of a handler; 0: all of the channel
  };

  void remove(const std::string& channel, std::uint64_t handler);
  void deliver(Lock& lock, const Posted& posted);

  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::uint64_t, Handler>, std::less<>> handlers_;  // by number
  std::uint64_t newest_ = 0;  // number of a handler
  std::deque<Posted> outbox_;
  std::atomic<bool> has_handlers_{false};
  std::atomic<bool> has_messages_{false};
  bool delivering_ = false;
  std::thread::id deliverer_;
  std::uint64_t running_ = 0;     // number of a handler; 0: none
  std::condition_variable idle_;  // no handler runs
};

}  // namespace sluice::engine
