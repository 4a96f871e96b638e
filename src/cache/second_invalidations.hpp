/// Does the delayed second invalidations that any process of this guard's name has planned: when
/// those of this process are due, and every ten seconds those of processes that are gone.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "cache/common.hpp"

namespace sluice::cache {

/// Threads: any.
class SecondInvalidations : public std::enable_shared_from_this<SecondInvalidations> {
 public:
  /// `forget`: takes a key out of this process, too.
  SecondInvalidations(std::shared_ptr<Common> common,
                      std::function<void(const std::string& value_key)> forget)
      : common_(std::move(common)), forget_(std::move(forget)) {}

  /// Begins to look, when the guard is first used.
  void start() {
    if (!started_.load(std::memory_order_relaxed) && !started_.exchange(true)) look_in(pause);
  }
  /// Looks in so long, if it would not before.
  void look_in(std::chrono::milliseconds delay);
  void close();

 private:
  static constexpr std::chrono::seconds pause{10};  // between looks at what others have planned
  static constexpr std::chrono::seconds retry{10};  // after an attempt that failed

  Task<void> look();

  const std::shared_ptr<Common> common_;
  const std::function<void(const std::string& value_key)> forget_;
  std::atomic<bool> started_{false};
  std::mutex mutex_;
  Clock::TimerId timer_ = 0;
  SteadyTime next_ = SteadyTime::max();
};

}  // namespace sluice::cache
