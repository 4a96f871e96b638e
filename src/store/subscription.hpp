/// Messages of one channel, one after another: the pull side of Store::listen.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "sluice/store.hpp"

namespace sluice {

/// One consumer at a time. Keeps at most `most_kept` unread messages; older ones give way to a
/// single gap.
class Subscription {
 public:
  static Task<Subscription> open(Store& store, std::string channel);

  Subscription(Subscription&&) noexcept = default;
  Subscription& operator=(Subscription&&) noexcept = default;
  ~Subscription() = default;

  /// The next message; empty when `deadline` (steady) passes first.
  Task<std::optional<Message>> next(SteadyTime deadline = SteadyTime::max());

  static constexpr std::size_t most_kept = 1024;

 private:
  struct Inbox {
    std::mutex mutex;
    std::deque<Message> messages;
    std::shared_ptr<Completion> arrival;  // of the consumer that waits
  };

  explicit Subscription(Store& store) : store_(&store), inbox_(std::make_shared<Inbox>()) {}

  Store* store_;
  std::shared_ptr<Inbox> inbox_;
  Listener listener_;
};

}  // namespace sluice
