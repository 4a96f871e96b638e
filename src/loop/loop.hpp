/// The turns of one thread of a server: what is ready, what is due, and at the end one write for
/// each connection that has something to send.
///
/// Descriptors are registered once, edge-triggered for both directions, so that epoll_ctl is not
/// called again for TCP. A handler that has bytes to send calls flush_later(), and is flushed once
/// at the end of the turn, however many requests went by.
///
/// Threads: one, except post().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/descriptor.hpp"
#include "loop/buffer.hpp"
#include "sluice/clock.hpp"

namespace sluice::loop {

/// Something with a descriptor. It lives until the end of the turn in which it was buried, so that
/// events of the same turn still find it.
class EventHandler {
 public:
  struct Readiness {
    bool readable = false;
    bool writable = false;
    bool hung_up = false;  ///< the peer will send no more, or an error: read until the end
  };

  virtual ~EventHandler() = default;
  virtual void ready(Readiness readiness) = 0;
  /// The end of a turn in which flush_later() was called.
  virtual void flush() {}

 private:
  friend class Loop;
  bool flush_is_due_ = false;
  bool again_is_due_ = false;
};

class Loop {
 public:
  using TimerId = std::pair<SteadyTime, std::uint64_t>;

  explicit Loop(Clock& clock);
  ~Loop();

  /// Throws std::system_error.
  void add(int descriptor, EventHandler& handler);
  /// Whether the handler of a descriptor that was added is told of room to write; at first it is.
  void tell_of_room(int descriptor, EventHandler& handler, bool tells) noexcept;
  /// A listening socket, which several loops may share: level-triggered, and one of them is
  /// woken.
  void add_listener(int descriptor, EventHandler& handler);
  void remove(int descriptor) noexcept;

  /// The time at which this turn began.
  SteadyTime now() const noexcept { return now_; }
  Clock& clock() noexcept { return clock_; }

  /// Run in each turn before anything is flushed. Empty: nothing is.
  void set_before_flush(std::function<void()> task) { before_flush_ = std::move(task); }
  void flush_later(EventHandler& handler) {
    if (!handler.flush_is_due_) {
      handler.flush_is_due_ = true;
      to_flush_.push_back(&handler);
    }
  }
  /// ready() with `readable` in the next turn, which does not wait.
  void again(EventHandler& handler) {
    if (!handler.again_is_due_) {
      handler.again_is_due_ = true;
      to_resume_.push_back(&handler);
    }
  }
  /// Its descriptor must have been removed. In this turn it may still be called, and must not ask
  /// for more.
  void bury(std::unique_ptr<EventHandler> handler);

  TimerId at(SteadyTime when, std::function<void()> callback);
  TimerId after(std::chrono::nanoseconds delay, std::function<void()> callback) {
    return at(Clock::add(now_, delay), std::move(callback));
  }
  void cancel(TimerId timer) noexcept { timers_.erase(timer); }

  /// Any thread: `task` runs in the next turn.
  void post(std::function<void()> task);

  /// Waits for events, timers or posts, `patience` at most, and serves them.
  void turn(std::chrono::milliseconds patience);

  /// What a stream consumes at this moment, if it lies in a buffer: another stream that is to write
  /// all of it may take it over. Null: nothing.
  Buffer* in_hand() const noexcept { return in_hand_; }
  void set_in_hand(Buffer* buffer) noexcept { in_hand_ = buffer; }

  BlockPool& blocks() noexcept { return blocks_; }
  const BlockPool& blocks() const noexcept { return blocks_; }
  /// Where a stream reads into that has at most `scratch_head` bytes left from before: there is
  /// room for them in front. Its contents are good until the next read of any stream.
  static constexpr std::size_t scratch_head = 4 << 10;
  static constexpr std::size_t scratch_size = 64 << 10;
  std::span<char> scratch() noexcept { return {scratch_.get() + scratch_head, scratch_size}; }

 private:
  int wait_time(std::chrono::milliseconds patience) const noexcept;
  void run_posted();
  void run_timers();
  void resume();
  void flush_all();

  Clock& clock_;
  std::function<void()> before_flush_;
  Descriptor epoll_;
  Descriptor wake_;
  SteadyTime now_;
  BlockPool blocks_;
  Buffer* in_hand_ = nullptr;
  std::unique_ptr<char[]> scratch_;
  std::vector<EventHandler*> to_flush_;
  std::vector<EventHandler*> flushing_;
  std::vector<EventHandler*> to_resume_;
  std::vector<EventHandler*> resuming_;
  std::vector<std::unique_ptr<EventHandler>> graveyard_;
  std::map<TimerId, std::function<void()>> timers_;
  std::uint64_t last_timer_ = 0;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // under mutex_
};

}  // namespace sluice::loop
