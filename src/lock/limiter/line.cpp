#include "lock/limiter/line.hpp"

#include <utility>

#include "lock/wait/waiting.hpp"

namespace sluice::lock {

RateLine::Place::Place(std::shared_ptr<RateLine> line) : line_(std::move(line)) {
  const std::lock_guard lock{line_->mutex_};
  at_ = line_->places_.insert(line_->places_.end(), this);
}

RateLine::Place::~Place() {
  std::shared_ptr<Completion> next;
  {
    const std::lock_guard lock{line_->mutex_};
    const bool first = line_->is_first(*this);
    line_->places_.erase(at_);
    if (first && !line_->places_.empty())
      next = std::exchange(line_->places_.front()->called_, nullptr);
  }
  if (next) next->complete();  // without the mutex: it may carry on right here
}

Task<bool> RateLine::Place::turn(SteadyTime until, std::stop_token stop) {
  const auto call = std::make_shared<Completion>(line_->store_.driver());
  {
    const std::lock_guard lock{line_->mutex_};
    if (line_->is_first(*this)) co_return true;
    called_ = call;
  }
  auto resting = wait_or_stop(call, line_->store_.clock(), until, std::move(stop));
  co_await resting;
  const std::lock_guard lock{line_->mutex_};
  called_ = nullptr;
  co_return line_->is_first(*this);
}

Task<void> RateLine::Place::sleep(SteadyTime until, std::stop_token stop) {
  {
    const std::lock_guard lock{line_->mutex_};
    line_->nothing_before_ = until;
  }
  const auto never_called = std::make_shared<Completion>(line_->store_.driver());
  auto resting = wait_or_stop(never_called, line_->store_.clock(), until, std::move(stop));
  co_await resting;
}

std::optional<SteadyTime> RateLine::nothing_before() const {
  const std::lock_guard lock{mutex_};
  if (places_.empty()) return std::nullopt;
  return nothing_before_;
}

std::shared_ptr<RateLine> RateLines::line_of(const std::string& key) {
  const std::lock_guard lock{mutex_};
  std::weak_ptr<RateLine>& slot = lines_[key];
  if (auto line = slot.lock()) return line;
  auto line = std::make_shared<RateLine>(store_);
  slot = line;
  std::erase_if(lines_, [](const auto& entry) { return entry.second.expired(); });
  return line;
}

}  // namespace sluice::lock
