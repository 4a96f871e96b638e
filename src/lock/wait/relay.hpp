/// Completes waiters one after another, not one inside another.
///
/// A completed coroutine runs at once, may release, and so complete the next; a thousand of them
/// would be a thousand frames on one stack. While a Relay is in scope on a thread, what is
/// completed through it waits for its end; a Relay inside another leaves the work to the outer one.
#pragma once

#include <memory>
#include <vector>

#include "sluice/task.hpp"

namespace sluice::lock {

class Relay {
 public:
  Relay() noexcept : outer_(current) {
    if (!outer_) current = this;
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    if (outer_) return;
    for (std::size_t i = 0; i < due_.size(); ++i) {
      const auto next = std::move(due_[i]);
      next->complete();
    }
    current = nullptr;
  }

  static void complete(std::shared_ptr<Completion> waiter) {
    Relay relay;
    current->due_.push_back(std::move(waiter));
  }

 private:
  static inline thread_local Relay* current = nullptr;
  Relay* const outer_;
  std::vector<std::shared_ptr<Completion>> due_;
};

}  // namespace sluice::lock
