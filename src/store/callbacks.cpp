#include "store/callbacks.hpp"

#include <string>

#include "base/callback.hpp"
#include "base/thread.hpp"
#include "sluice/clock.hpp"
#include "sluice/log.hpp"

namespace sluice {

bool Callbacks::call(std::function<void()> callback) noexcept try {
  auto guarded = [callback = std::move(callback)] { call_user("a callback", callback); };
  if (executor_) {
    executor_(std::move(guarded));
    return true;
  }
  const std::lock_guard lock{mutex_};
  if (ending_) return true;
  waiting_.emplace_back(std::move(guarded));
  start_thread_or_try_later();
  called_.notify_one();
  return true;
} catch (...) {
  report_thrown("the executor of a Store", std::current_exception());
  return false;
}

/// REQUIRES: mutex_
void Callbacks::start_thread_or_try_later() {
  if (thread_.joinable()) return;
  try {
    thread_ = start_thread([self = shared_from_this()] { self->run(); });
  } catch (const std::exception& lack) {
    if (lack_.is_due(system_clock().steady()))
      log(LogLevel::warning, std::string{"callbacks of a Store wait: "} + lack.what());
    system_clock().after(std::chrono::milliseconds{100}, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      const std::lock_guard lock{self->mutex_};
      if (!self->ending_ && !self->waiting_.empty()) self->start_thread_or_try_later();
    });
  }
}

void Callbacks::run() {
  std::unique_lock lock{mutex_};
  for (;;) {
    called_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = true;
    lock.unlock();
    next();
    next = nullptr;  // what it holds may call back into this class
    lock.lock();
    running_ = false;
  }
}

bool Callbacks::is_busy_elsewhere() {
  const std::lock_guard lock{mutex_};
  return (running_ || !waiting_.empty()) && thread_.get_id() != std::this_thread::get_id();
}

void Callbacks::end() {
  if (forks_ != fork_count()) return;  // the thread is the parent's
  std::thread ending;
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
    ending.swap(thread_);
    called_.notify_all();
  }
  if (!ending.joinable()) return;
  if (ending.get_id() == std::this_thread::get_id()) return ending.detach();
  ending.join();
}

/// The messages to one handler, which are given to it one after another.
class Callbacks::Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  Mailbox(std::shared_ptr<Callbacks> callbacks, MessageHandler handler)
      : callbacks_(std::move(callbacks)), handler_(std::move(handler)) {}

  void put(const Message& message) {
    {
      const std::lock_guard lock{mutex_};
      if (ended_) return;
      if (messages_.size() >= most_kept) {
        messages_.clear();
        messages_.push_back(
            {.kind = Message::Kind::gap, .channel = message.channel, .payload = {}});
      }
      messages_.push_back(message);
      if (std::exchange(delivering_, true)) return;
    }
    deliver_soon();
  }

  /// Afterwards the handler does not run, unless it is this very thread that runs it.
  void end() {
    if (callbacks_->forks_ != fork_count()) return;  // a thread of the parent may run it for ever
    std::unique_lock lock{mutex_};
    ended_ = true;
    messages_.clear();
    if (reader_ != std::this_thread::get_id())
      idle_.wait(lock, [this] { return reader_ == std::thread::id{}; });
  }

 private:
  static constexpr std::size_t most_kept = 1024;

  /// What the executor refuses comes with the next message.
  void deliver_soon() {
    if (callbacks_->call([self = shared_from_this()] { self->deliver(); })) return;
    const std::lock_guard lock{mutex_};
    delivering_ = false;
  }

  /// One message for each call, so that other callbacks have their turn.
  void deliver() {
    std::unique_lock lock{mutex_};
    if (!messages_.empty()) {
      const Message message = std::move(messages_.front());
      messages_.pop_front();
      reader_ = std::this_thread::get_id();
      lock.unlock();
      call_user("a handler of channel '" + message.channel + "'", [&] { handler_(message); });
      lock.lock();
      reader_ = {};
      idle_.notify_all();
    }
    delivering_ = !messages_.empty();
    if (!delivering_) return;
    lock.unlock();
    deliver_soon();
  }

  const std::shared_ptr<Callbacks> callbacks_;
  const MessageHandler handler_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<Message> messages_;
  bool delivering_ = false;
  bool ended_ = false;
  std::thread::id reader_;
};

class Callbacks::Subscribed final : public Listener::Registration {
 public:
  Subscribed(Listener listener, std::shared_ptr<Mailbox> mailbox)
      : listener_(std::move(listener)), mailbox_(std::move(mailbox)) {}
  ~Subscribed() override {
    listener_ = {};
    mailbox_->end();
  }

 private:
  Listener listener_;
  const std::shared_ptr<Mailbox> mailbox_;
};

Task<Listener> Callbacks::listen(MessageHandler handler, Subscribe subscribe) {
  const auto mailbox = std::make_shared<Mailbox>(shared_from_this(), std::move(handler));
  auto subscribing = subscribe([mailbox](const Message& message) { mailbox->put(message); });
  Listener listener = co_await subscribing;
  co_return Listener{std::make_unique<Subscribed>(std::move(listener), mailbox)};
}

Listener Callbacks::watch(std::function<void()> handler,
                          const std::function<Listener(std::function<void()>)>& subscribe) {
  const auto mailbox = std::make_shared<Mailbox>(
      shared_from_this(), [handler = std::move(handler)](const Message&) { handler(); });
  Listener listener = subscribe([mailbox] { mailbox->put({.kind = Message::Kind::gap}); });
  return Listener{std::make_unique<Subscribed>(std::move(listener), mailbox)};
}

}  // namespace sluice
