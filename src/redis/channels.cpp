#include "redis/channels.hpp"

#include <algorithm>
#include <utility>

#include "base/callback.hpp"

namespace sluice::redis {

void Handler::call(const Message& message, const std::function<bool()>& is_due) {
  std::thread::id before;
  {
    std::unique_lock lock{mutex_};
    // Two connections may tell it, of two nodes.
    const auto self = std::this_thread::get_id();
    idle_.wait(lock, [&] { return caller_ == std::thread::id{} || caller_ == self; });
    if (ended_) return;
    before = std::exchange(caller_, self);
  }
  if (is_due())
    call_user("a handler of channel '" + message.channel + "'", [&] { function_(message); });
  const std::lock_guard lock{mutex_};
  caller_ = before;
  idle_.notify_all();
}

void Handler::end() {
  std::unique_lock lock{mutex_};
  ended_ = true;
  if (caller_ == std::this_thread::get_id()) return;
  idle_.wait(lock, [&] { return caller_ == std::thread::id{}; });
}

bool Channels::add(const std::string& channel, std::shared_ptr<Handler> handler) {
  const std::lock_guard lock{mutex_};
  Channel& entry = channels_[channel];
  auto handlers =
      entry.handlers ? std::make_shared<Handlers>(*entry.handlers) : std::make_shared<Handlers>();
  handlers->push_back(std::move(handler));
  entry.handlers = std::move(handlers);
  count_.store(channels_.size(), std::memory_order_relaxed);
  return !entry.confirmed;
}

bool Channels::erase(const std::string& channel, const Handler& handler) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return false;
  auto handlers = std::make_shared<Handlers>(*found->second.handlers);
  std::erase_if(*handlers, [&](const auto& one) { return one.get() == &handler; });
  const bool was_last = handlers->empty();
  if (was_last) {
    channels_.erase(found);
    count_.store(channels_.size(), std::memory_order_relaxed);
  } else {
    found->second.handlers = std::move(handlers);
  }
  return was_last;
}

void Channels::confirm(Kind, const std::string& channel) {
  const std::lock_guard lock{mutex_};
  if (const auto found = channels_.find(channel); found != channels_.end())
    found->second.confirmed = true;
}

void Channels::refused(const std::string& channel, const std::string& why) {
  if (!on_refused) return;  // the next connection asks for it
  {
    const std::lock_guard lock{mutex_};
    const auto found = channels_.find(channel);
    if (found == channels_.end()) return;
    found->second.confirmed = false;
  }
  on_refused(channel, why);
}

bool Channels::is_silent(const std::string& channel) const {
  const std::lock_guard lock{mutex_};
  const auto found = channels_.find(channel);
  return found != channels_.end() && !found->second.confirmed;
}

std::vector<std::string> Channels::confirmed() const {
  const std::lock_guard lock{mutex_};
  std::vector<std::string> names;
  for (const auto& [name, channel] : channels_)
    if (channel.confirmed) names.push_back(name);
  return names;
}

std::shared_ptr<const Channels::Handlers> Channels::handlers_of(const std::string& channel) const {
  const std::lock_guard lock{mutex_};
  const auto found = channels_.find(channel);
  return found == channels_.end() ? nullptr : found->second.handlers;
}

void Channels::deliver(Kind, const Message& message) {
  const auto handlers = handlers_of(message.channel);
  if (!handlers) return;
  for (const auto& handler : *handlers) handler->call(message);
}

void Channels::deliver_gap(const std::vector<std::string>& channels) {
  for (const auto& channel : channels)
    deliver(Kind::classic, {.kind = Message::Kind::gap, .channel = channel, .payload = {}});
}

void Channels::add_watcher(std::shared_ptr<Handler> handler) {
  const std::lock_guard lock{mutex_};
  watchers_.push_back(std::move(handler));
}

void Channels::remove_watcher(const Handler& handler) {
  const std::lock_guard lock{mutex_};
  std::erase_if(watchers_, [&](const auto& one) { return one.get() == &handler; });
}

void Channels::tell_reconnected() {
  Handlers watchers;
  {
    const std::lock_guard lock{mutex_};
    watchers = watchers_;
  }
  for (const auto& watcher : watchers)
    watcher->call({.kind = Message::Kind::gap, .channel = {}, .payload = {}});
}

}  // namespace sluice::redis
