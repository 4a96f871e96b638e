#include "proxy/watch/slow_log.hpp"

#include "proxy/watch/excerpt.hpp"

namespace sluice::proxy {

void SlowLog::note(const SlowRequest& request, WallTime now) {
  static std::atomic<std::uint64_t> last_id{0};
  SlowEntry entry{.id = last_id.fetch_add(1, std::memory_order_relaxed) + 1,
                  .at = now,
                  .took = std::chrono::duration_cast<std::chrono::microseconds>(request.took),
                  .pool = std::string{request.pool},
                  .command = std::string{request.command},
                  .key = excerpt(request.key),
                  .client = std::string{request.client},
                  .server = std::string{request.server}};
  const std::lock_guard lock{mutex_};
  entries_.push_front(std::move(entry));
  if (entries_.size() > most_) entries_.resize(most_);
}

void SlowLog::set_limits(std::size_t entries, std::chrono::microseconds threshold) {
  threshold_ns_.store(std::chrono::nanoseconds{threshold}.count(), std::memory_order_relaxed);
  const std::lock_guard lock{mutex_};
  most_ = entries;
  if (entries_.size() > most_) entries_.resize(most_);
}

std::vector<SlowEntry> SlowLog::entries() const {
  const std::lock_guard lock{mutex_};
  return {entries_.begin(), entries_.end()};
}

void SlowLog::reset() {
  const std::lock_guard lock{mutex_};
  entries_.clear();
}

}  // namespace sluice::proxy
