#include "cache/second_invalidations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::cache {

void SecondInvalidations::look_in(std::chrono::milliseconds delay) {
  const SteadyTime when = common_->clock().steady() + delay;
  Clock::TimerId later = 0;
  {
    const std::lock_guard lock{mutex_};
    if (common_->closed || when >= next_) return;
    const auto timer = common_->clock().at(when, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) spawn(self->look());
    });
    next_ = when;
    later = std::exchange(timer_, timer);
  }
  if (later != 0) common_->clock().cancel(later);
}

Task<void> SecondInvalidations::look() {
  const auto self = shared_from_this();
  const UnderWay::Scope scope{common_->under_way};
  {
    const std::lock_guard lock{mutex_};
    if (common_->closed) co_return;
    next_ = SteadyTime::max();
  }
  std::chrono::milliseconds next = pause;
  try {
    auto asked = common_->wire.due(retry);
    const DueKeys due = co_await asked;
    for (const auto& planned : due.keys) {
      const std::string value_key = common_->names.value_of(planned.key);
      forget_(value_key);
      try {
        auto invalidating = common_->wire.invalidate({value_key});
        co_await invalidating;
      } catch (const Error& failure) {
        if (failure.errc() != Errc::wrong_type) throw;  // else no value of ours is there
      }
      forget_(value_key);
      count(metrics().cache_second_invalidations);
      auto done = common_->wire.done(planned);
      co_await done;
    }
    if (due.next >= next.zero()) next = std::min(next, due.next + std::chrono::milliseconds{1});
  } catch (const Error& failure) {
    log(LogLevel::debug, fmt::format("second invalidations of the cache '{}' wait: {}",
                                     common_->names.name(), failure.message()));
  }
  look_in(next);
}

void SecondInvalidations::close() {
  Clock::TimerId timer = 0;
  {
    const std::lock_guard lock{mutex_};
    timer = std::exchange(timer_, 0);
  }
  if (timer != 0) common_->clock().cancel(timer);
}

}  // namespace sluice::cache
