/// What other threads have for the connections of one loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "http/responder.hpp"

namespace sluice::http {

/// Shared by an EventStream and its connection.
struct EventStream::State {
  const std::shared_ptr<Mailbox> mailbox;
  const std::uint64_t connection;
  std::atomic<bool> is_open{true};
};

/// Threads: any.
class Mailbox {
 public:
  struct Begin {  // the answer is an event stream
    std::shared_ptr<EventStream::State> state;
  };
  struct Bytes {  // of an event stream
    std::string bytes;
  };
  struct End {};  // of an event stream
  struct Watch {  // the handler wants to know when the client goes
    std::stop_source gone;
  };
  struct Letter {
    std::uint64_t connection = 0;
    std::uint64_t request = 0;
    std::variant<Response, Begin, Bytes, End, Watch> content;
  };
  /// The loop's side.
  class Owner {
   public:
    virtual void deliver(Letter letter) = 0;
    /// Any thread: collect() is due in the loop's.
    virtual void wake() = 0;
    /// Called back once in this turn, before it writes.
    virtual void at_end_of_turn(std::function<void()> call) = 0;

   protected:
    ~Owner() = default;
  };

  explicit Mailbox(Owner& owner) noexcept : owner_(&owner) {}

  /// Called by the loop's thread, the letter is delivered before this returns. What nobody gets any
  /// more is dropped, and a watch is told so.
  void post(Letter letter);

  // The loop's side.
  void enter() noexcept { thread_.store(std::this_thread::get_id(), std::memory_order_relaxed); }
  void collect();
  void at_end_of_turn(std::function<void()> call) {
    if (owner_) owner_->at_end_of_turn(std::move(call));
  }
  /// Nothing is delivered from now on.
  void close() noexcept;

 private:
  std::atomic<std::thread::id> thread_{};
  std::mutex mutex_;
  Owner* owner_;                 // under mutex_, but for the loop's thread; null: closed
  std::vector<Letter> letters_;  // under mutex_
};

}  // namespace sluice::http
