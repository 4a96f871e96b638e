/// What a tracker or a listener was told, in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::test {

/// Threads: any. Handlers may outlive it.
class Told {
 public:
  MessageHandler handler() const {
    return [state = state_](const Message& message) {
      const std::lock_guard lock{state->mutex};
      state->messages.push_back(message);
      state->came.notify_all();
    };
  }

  std::vector<Message> all() const {
    const std::lock_guard lock{state_->mutex};
    return state_->messages;
  }
  /// That have changed.
  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& message : all())
      if (message.kind == Message::Kind::published) keys.push_back(message.payload);
    return keys;
  }
  void forget() const {
    const std::lock_guard lock{state_->mutex};
    state_->messages.clear();
  }

  /// The first message of which that is true; empty: none came within 20 s.
  template <class Predicate>
  std::optional<Message> wait_until(Predicate is_right) const {
    std::unique_lock lock{state_->mutex};
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    for (std::size_t seen = 0;;) {
      for (; seen < state_->messages.size(); ++seen)
        if (is_right(state_->messages[seen])) return state_->messages[seen];
      if (state_->came.wait_until(lock, patience) == std::cv_status::timeout) return std::nullopt;
    }
  }
  std::optional<Message> wait_for(Message::Kind kind) const {
    return wait_until([&](const Message& message) { return message.kind == kind; });
  }
  /// Of a changed key.
  bool hears(const std::string& key) const {
    return wait_until([&](const Message& message) {
             return message.kind == Message::Kind::published && message.payload == key;
           })
        .has_value();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable came;
    std::vector<Message> messages;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace sluice::test
