#include "lock/limiter/queue.hpp"

#include <utility>

#include "lock/wait/waiting.hpp"

namespace sluice::lock {

RateQueue::Waiter::Waiter(std::shared_ptr<RateQueue> queue) : queue_(std::move(queue)) {
  const std::lock_guard lock{queue_->mutex_};
  at_ = queue_->waiters_.insert(queue_->waiters_.end(), this);
}

RateQueue::Waiter::~Waiter() {
  std::shared_ptr<Completion> next;
  {
    const std::lock_guard lock{queue_->mutex_};
    const bool first = queue_->is_first(*this);
    queue_->waiters_.erase(at_);
    if (first && !queue_->waiters_.empty())
      next = std::exchange(queue_->waiters_.front()->called_, nullptr);
  }
  if (next) next->complete();  // without the mutex: the waiter may go on right here
}

Task<bool> RateQueue::Waiter::turn(SteadyTime until, std::stop_token stop) {
  const auto call = std::make_shared<Completion>(queue_->store_.driver());
  {
    const std::lock_guard lock{queue_->mutex_};
    if (queue_->is_first(*this)) co_return true;
    called_ = call;
  }
  co_await wait_or_stop(call, queue_->store_.clock(), until, std::move(stop));
  const std::lock_guard lock{queue_->mutex_};
  called_ = nullptr;
  co_return queue_->is_first(*this);
}

Task<void> RateQueue::Waiter::sleep(SteadyTime until, std::stop_token stop) {
  {
    const std::lock_guard lock{queue_->mutex_};
    queue_->nothing_before_ = until;
  }
  const auto never_called = std::make_shared<Completion>(queue_->store_.driver());
  co_await wait_or_stop(never_called, queue_->store_.clock(), until, std::move(stop));
}

std::optional<SteadyTime> RateQueue::nothing_before() const {
  const std::lock_guard lock{mutex_};
  if (waiters_.empty()) return std::nullopt;
  return nothing_before_;
}

}  // namespace sluice::lock
