#include "engine/embedded/channels.hpp"

#include <utility>

#include "base/callback.hpp"

namespace sluice::engine {

class Channels::Registration final : public Listener::Registration {
 public:
  Registration(std::shared_ptr<Channels> channels, std::string channel, std::uint64_t number,
               Handler handler)
      : channels_(std::move(channels)),
        channel_(std::move(channel)),
        number_(number),
        handler_(std::move(handler)) {}
  ~Registration() override { channels_->remove(channel_, number_); }

 private:
  std::shared_ptr<Channels> channels_;
  std::string channel_;
  std::uint64_t number_;
  Handler handler_;  // ends outside the lock: that may call back into Channels
};

Listener Channels::listen(std::string channel, MessageHandler handler,
                          std::optional<Message> first) {
  auto shared = std::make_shared<const MessageHandler>(std::move(handler));
  std::uint64_t number = 0;
  {
    const Lock lock{mutex_};
    number = ++newest_;
    handlers_[channel].emplace(number, shared);
    if (first) {
      outbox_.push_back({*std::move(first), number});
      has_messages_.store(true, std::memory_order_release);
    }
    has_handlers_.store(true, std::memory_order_release);
  }
  return Listener{std::make_unique<Registration>(shared_from_this(), std::move(channel), number,
                                                 std::move(shared))};
}

void Channels::remove(const std::string& channel, std::uint64_t handler) {
  Lock lock{mutex_};
  const auto found = handlers_.find(channel);
  found->second.erase(handler);
  if (found->second.empty()) handlers_.erase(found);
  has_handlers_.store(!handlers_.empty(), std::memory_order_release);
  if (deliverer_ != std::this_thread::get_id())
    idle_.wait(lock, [&] { return running_ != handler; });
}

std::size_t Channels::receivers(std::string_view channel) const {
  if (!has_handlers_.load(std::memory_order_acquire)) return 0;
  const Lock lock{mutex_};
  const auto found = handlers_.find(channel);
  return found == handlers_.end() ? 0 : found->second.size();
}

std::vector<std::string> Channels::names() const {
  const Lock lock{mutex_};
  std::vector<std::string> names;
  for (const auto& [channel, handlers] : handlers_) names.push_back(channel);
  return names;
}

void Channels::post(std::vector<Context::Published>& messages) {
  if (messages.empty()) return;
  const Lock lock{mutex_};
  for (auto& message : messages) {
    if (message.sharded) continue;
    outbox_.push_back(
        {{Message::Kind::published, std::move(message.channel), std::move(message.payload)}});
  }
  has_messages_.store(true, std::memory_order_release);
}

void Channels::post(std::vector<Message> messages, std::size_t most) {
  if (messages.empty()) return;
  const Lock lock{mutex_};
  if (outbox_.size() + messages.size() > most) {
    outbox_.clear();
    for (const auto& [channel, handlers] : handlers_)
      outbox_.push_back({{Message::Kind::gap, channel, {}}});
  } else {
    for (auto& message : messages) outbox_.push_back({std::move(message)});
  }
  has_messages_.store(true, std::memory_order_release);
}

void Channels::deliver() {
  if (!has_messages_.load(std::memory_order_acquire)) return;
  Lock lock{mutex_};
  if (delivering_) return;
  delivering_ = true;
  deliverer_ = std::this_thread::get_id();
  while (!outbox_.empty()) {
    const Posted posted = std::move(outbox_.front());
    outbox_.pop_front();
    deliver(lock, posted);
  }
  has_messages_.store(false, std::memory_order_release);
  delivering_ = false;
  deliverer_ = {};
}

void Channels::deliver(Lock& lock, const Posted& posted) {
  const Message& message = posted.message;
  const std::uint64_t last = posted.only != 0 ? posted.only : newest_;
  for (std::uint64_t next = posted.only;; ++next) {
    // A handler that ran before may have removed this one, or the last of all.
    const auto found = handlers_.find(message.channel);
    if (found == handlers_.end()) return;
    const auto at = found->second.lower_bound(next);
    if (at == found->second.end() || at->first > last) return;
    next = running_ = at->first;
    Handler handler = at->second;
    lock.unlock();
    call_user("a handler of channel '" + message.channel + "'", [&] { (*handler)(message); });
    handler = nullptr;  // outside the lock: destroying it may call back into this class
    lock.lock();
    running_ = 0;
    idle_.notify_all();
  }
}

}  // namespace sluice::engine
