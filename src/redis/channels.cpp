#include "redis/channels.hpp"

#include <array>
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
  entry.handlers.emplace(handler->number(), std::move(handler));
  count_.store(channels_.size(), std::memory_order_relaxed);
  return !entry.confirmed;
}

bool Channels::erase(const std::string& channel, const Handler& handler) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return false;
  found->second.handlers.erase(handler.number());
  if (!found->second.handlers.empty()) return false;
  channels_.erase(found);
  count_.store(channels_.size(), std::memory_order_relaxed);
  return true;
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

template <class Find>
void Channels::call_each(const Message& message, Find handlers) {
  const std::uint64_t last = Handler::newest();
  std::array<std::shared_ptr<Handler>, 64> due;  // so many under one lock
  for (std::uint64_t called = 0;;) {
    std::size_t count = 0;
    {
      const std::lock_guard lock{mutex_};
      const Handlers* const all = handlers();
      if (!all) return;
      for (auto at = all->upper_bound(called);
           at != all->end() && at->first <= last && count < due.size(); ++at) {
        called = at->first;
        due[count++] = at->second;
      }
    }
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) std::exchange(due[i], nullptr)->call(message);
  }
}

void Channels::deliver(Kind, const Message& message) {
  call_each(message, [&]() -> const Handlers* {
    const auto found = channels_.find(message.channel);
    return found == channels_.end() ? nullptr : &found->second.handlers;
  });
}

void Channels::deliver_gap(const std::vector<std::string>& channels) {
  for (const auto& channel : channels)
    deliver(Kind::classic, {.kind = Message::Kind::gap, .channel = channel, .payload = {}});
}

void Channels::add_watcher(std::shared_ptr<Handler> handler) {
  const std::lock_guard lock{mutex_};
  watchers_.emplace(handler->number(), std::move(handler));
}

void Channels::remove_watcher(const Handler& handler) {
  const std::lock_guard lock{mutex_};
  watchers_.erase(handler.number());
}

void Channels::tell_reconnected() {
  call_each({.kind = Message::Kind::gap, .channel = {}, .payload = {}},
            [this] { return &watchers_; });
}

}  // namespace sluice::redis
