/// A Store without a store: replies come from a function, messages from publish().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/store.hpp"

namespace sluice {

class FakeStore final : public Store {
 public:
  using Answer = std::function<Value(std::vector<std::string> words)>;

  explicit FakeStore(Answer answer = {}) : answer_(std::move(answer)) {}

  Task<Value> run(Words command, CallOptions) override {
    return Task<Value>::ready(answer_({command.begin(), command.end()}));
  }
  Task<Value> run(const Script& script, Words, Words, CallOptions) override {
    return Task<Value>::ready(answer_({std::string{script.name}}));
  }
  Task<std::vector<Value>> run(Batch batch, CallOptions) override {
    std::vector<Value> replies;
    for (const auto& item : batch.items()) replies.push_back(answer_(item.words));
    return Task<std::vector<Value>>::ready(std::move(replies));
  }
  using Store::run;

  Task<Listener> listen(std::string channel, MessageHandler handler) override {
    const std::lock_guard lock{channels_->mutex};
    const auto id = ++channels_->last;
    channels_->handlers[id] = {std::move(channel), std::move(handler)};
    return Task<Listener>::ready(Listener{std::make_unique<Leave>(channels_, id)});
  }

  Listener track(std::string prefix, MessageHandler handler) override {
    if (!tells_changes) return Store::track(std::move(prefix), std::move(handler));
    return listen(std::move(prefix), std::move(handler)).get();
  }

  void publish(const std::string& channel, const std::string& payload) {
    deliver(Message{.channel = channel, .payload = payload});
  }
  void deliver(const Message& message) {
    const std::lock_guard lock{channels_->mutex};
    for (const auto& [id, entry] : channels_->handlers)
      if (entry.first == message.channel) entry.second(message);
  }
  std::size_t listeners() const {
    const std::lock_guard lock{channels_->mutex};
    return channels_->handlers.size();
  }

  Clock& clock() noexcept override { return virtual_clock; }
  Driver* driver() noexcept override { return nullptr; }
  std::string describe() const override { return "fake:"; }

  VirtualClock virtual_clock;
  bool tells_changes = true;

 private:
  struct Channels {
    std::mutex mutex;
    int last = 0;
    std::map<int, std::pair<std::string, MessageHandler>> handlers;
  };
  struct Leave final : Listener::Registration {
    Leave(std::shared_ptr<Channels> all, int own) : channels(std::move(all)), id(own) {}
    ~Leave() override {
      const std::lock_guard lock{channels->mutex};
      channels->handlers.erase(id);
    }
    std::shared_ptr<Channels> channels;
    int id;
  };

  Answer answer_;
  std::shared_ptr<Channels> channels_ = std::make_shared<Channels>();
};

}  // namespace sluice
