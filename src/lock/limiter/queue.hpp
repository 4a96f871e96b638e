/// The waiters of this process for one rate, in the order of their arrival: one queue for each key.
/// Only the first waiter asks the server. The others wait behind it, and a caller that comes while
/// there are waiters does not ask either.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "lock/per_store.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

class RateQueue {
 public:
  explicit RateQueue(Store& store) : store_(store) {}

  /// A caller that waits, while it lives. Its end wakes the next.
  class Waiter {
   public:
    explicit Waiter(std::shared_ptr<RateQueue> queue);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// Waits until it is the first. False: `until` or `stop` came before.
    Task<bool> turn(SteadyTime until, std::stop_token stop);
    /// Of the first waiter: sleeps until `until` or `stop`. The others know then that they get
    /// nothing before.
    Task<void> sleep(SteadyTime until, std::stop_token stop);

   private:
    friend class RateQueue;
    std::shared_ptr<RateQueue> queue_;
    std::list<Waiter*>::iterator at_;
    std::shared_ptr<Completion> called_;  // while it waits for its turn
  };

  /// Nothing can be had before that time. Empty: there is no waiter, so it is not known.
  std::optional<SteadyTime> nothing_before() const;

  /// How much longer than until a permit is free a waiter sleeps: Redisson comes 3 ms and a bit
  /// later than that, and stands in no queue. Where it was seen three sleeps of four leave it that
  /// time; else every eighth does, in order to see it.
  std::chrono::nanoseconds courtesy(std::chrono::nanoseconds interval, SteadyTime now) {
    using namespace std::chrono_literals;
    const std::lock_guard lock{mutex_};
    ++sleeps_;
    if (now < strangers_until_ ? sleeps_ % 4 == 0 : sleeps_ % 8 != 0) return 0ns;
    return std::min<std::chrono::nanoseconds>(6ms, interval / 16);
  }
  void see_strangers(SteadyTime until) {
    const std::lock_guard lock{mutex_};
    strangers_until_ = until;
  }

  /// The rate by which the server last counted for this process; 0: none.
  std::atomic<std::int64_t> counted_by{0};

 private:
  bool is_first(const Waiter& waiter) const { return waiters_.front() == &waiter; }

  Store& store_;
  mutable std::mutex mutex_;
  std::list<Waiter*> waiters_;
  SteadyTime strangers_until_{};
  unsigned sleeps_ = 0;
  SteadyTime nothing_before_{};
};

class RateQueues {
 public:
  explicit RateQueues(Store& store) : store_(store) {}
  std::shared_ptr<RateQueue> queue_of(const std::string& key) {
    return queues_.of(key, [this] { return std::make_shared<RateQueue>(store_); });
  }

 private:
  Store& store_;
  InUse<std::string, RateQueue> queues_;
};

}  // namespace sluice::lock
