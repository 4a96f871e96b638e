/// Hears a channel for one waiter. What it hears while the waiter does something else is kept, as
/// one call however often it came.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "sluice/store.hpp"

namespace sluice::lock {

class Ear {
 public:
  /// Subscribed: no message that is published after this is missed. Throws what listen throws.
  static Task<Ear> open(Store& store, std::string channel);

  /// Until a message or a gap in the messages, `until`, or `stop`.
  Task<void> hear(SteadyTime until, std::stop_token stop);

 private:
  struct State {
    std::mutex mutex;
    bool called = false;
    std::shared_ptr<Completion> waiting;  // for a call
  };

  explicit Ear(Store& store) : store_(&store), state_(std::make_shared<State>()) {}

  Store* store_;
  std::shared_ptr<State> state_;
  Listener listener_;
};

}  // namespace sluice::lock
