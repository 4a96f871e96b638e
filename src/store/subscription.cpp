#include "store/subscription.hpp"

namespace sluice {

Task<Subscription> Subscription::open(Store& store, std::string channel) {
  Subscription subscription{store};
  auto deliver = [inbox = subscription.inbox_](const Message& message) {
    std::shared_ptr<Completion> arrival;
    {
      const std::lock_guard lock{inbox->mutex};
      if (inbox->messages.size() >= most_kept) {
        inbox->messages.clear();
        inbox->messages.push_back(
            Message{.kind = Message::Kind::gap, .channel = message.channel, .payload = {}});
      }
      inbox->messages.push_back(message);
      arrival = std::exchange(inbox->arrival, nullptr);
    }
    if (arrival) arrival->complete();
  };
  subscription.listener_ = co_await store.subscribe(std::move(channel), std::move(deliver));
  co_return subscription;
}

Task<std::optional<Message>> Subscription::next(SteadyTime deadline) {
  for (;;) {
    std::shared_ptr<Completion> arrival;
    {
      const std::lock_guard lock{inbox_->mutex};
      if (!inbox_->messages.empty()) {
        Message message = std::move(inbox_->messages.front());
        inbox_->messages.pop_front();
        co_return message;
      }
      arrival = std::make_shared<Completion>(store_->message_driver());
      inbox_->arrival = arrival;
    }
    if (!co_await wait_until(*arrival, store_->clock(), deadline)) {
      const std::lock_guard lock{inbox_->mutex};
      inbox_->arrival = nullptr;
      if (inbox_->messages.empty()) co_return std::nullopt;
    }
  }
}

}  // namespace sluice
