#include "engine/embedded/channels.hpp"

#include <algorithm>

#include "base/callback.hpp"

namespace sluice::engine {

class Channels::Registration final : public Listener::Registration {
 public:
  Registration(std::shared_ptr<Channels> channels, std::string channel, Handler handler)
      : channels_(std::move(channels)),
        channel_(std::move(channel)),
        handler_(std::move(handler)) {}
  ~Registration() override { channels_->remove(channel_, handler_); }

 private:
  std::shared_ptr<Channels> channels_;
  std::string channel_;
  Handler handler_;
};

Listener Channels::listen(std::string channel, MessageHandler handler,
                          std::optional<Message> first) {
  auto shared = std::make_shared<const MessageHandler>(std::move(handler));
  {
    const Lock lock{mutex_};
    handlers_[channel].push_back(shared);
    if (first) {
      outbox_.push_back({*std::move(first), shared});
      has_messages_.store(true, std::memory_order_release);
    }
    has_handlers_.store(true, std::memory_order_release);
  }
  return Listener{
      std::make_unique<Registration>(shared_from_this(), std::move(channel), std::move(shared))};
}

void Channels::remove(const std::string& channel, const Handler& handler) {
  Lock lock{mutex_};
  const auto found = handlers_.find(channel);
  std::erase(found->second, handler);
  if (found->second.empty()) handlers_.erase(found);
  has_handlers_.store(!handlers_.empty(), std::memory_order_release);
  if (deliverer_ != std::this_thread::get_id())
    idle_.wait(lock, [&] { return running_ != handler.get(); });
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
  for (auto& message : messages)
    outbox_.push_back(
        {{Message::Kind::published, std::move(message.channel), std::move(message.payload)}});
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
  const auto found = handlers_.find(message.channel);
  if (found == handlers_.end()) return;
  auto handlers = posted.only ? std::vector{posted.only} : found->second;
  for (auto& handler : handlers) {
    // A handler that ran before may have removed this one.
    const bool registered = is_registered(message.channel, handler);
    running_ = registered ? handler.get() : nullptr;
    lock.unlock();
    if (registered)
      call_user("a handler of channel '" + message.channel + "'", [&] { (*handler)(message); });
    handler = nullptr;  // outside the lock: destroying it may call back into this class
    lock.lock();
    running_ = nullptr;
    idle_.notify_all();
  }
}

bool Channels::is_registered(const std::string& channel, const Handler& handler) const {
  const auto found = handlers_.find(channel);
  return found != handlers_.end() &&
         std::ranges::find(found->second, handler) != found->second.end();
}

}  // namespace sluice::engine
