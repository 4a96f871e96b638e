/// Where a Store runs the callbacks of its users: on their executor, or on a thread of its own,
/// never inside the Store.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "base/process.hpp"
#include "base/rare_line.hpp"
#include "base/timers.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// Threads: any.
class Callbacks : public std::enable_shared_from_this<Callbacks> {
 public:
  /// `executor` empty: a thread of its own, started for the first callback.
  /// Throws Error{out_of_space}: no timer is to be had.
  explicit Callbacks(Executor executor) : executor_(std::move(executor)) { ready_timers(); }

  /// Runs `callback` soon; at once, if `executor` is run_at_once. What it throws is logged. False:
  /// the executor has thrown instead.
  bool call(std::function<void()> callback) noexcept;
  /// Whether the thread of its own has callbacks to run, and is not the caller's.
  bool is_busy_elsewhere();
  /// Waits for the callbacks on the thread of its own, unless it is called there. Those that come
  /// later are dropped.
  void end();

  /// `subscribe` with a handler that hands each message to `handler`, as Store::listen promises.
  using Subscribe = std::function<Task<Listener>(MessageHandler handler)>;
  Task<Listener> listen(MessageHandler handler, Subscribe subscribe);
  /// The same for Store::on_reconnect.
  Listener watch(std::function<void()> handler,
                 const std::function<Listener(std::function<void()>)>& subscribe);

  static void run_at_once(const std::function<void()>& work) { work(); }

 private:
  class Mailbox;
  class Subscribed;
  void run();
  void start_thread_or_try_later();

  const Executor executor_;
  const unsigned forks_ = fork_count();
  std::mutex mutex_;
  std::condition_variable called_;
  std::deque<std::function<void()>> waiting_;
  bool running_ = false;  // one of them
  bool ending_ = false;
  std::thread thread_;
  RareLine lack_;
};

}  // namespace sluice
