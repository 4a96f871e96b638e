/// The waiters of this process for one rate, in the order of their arrival: one queue for each key.
/// Only the first waiter asks the server. The others wait behind it, and a caller that comes while
/// there are waiters does not ask either.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>

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

  /// The rate by which the server last counted for this process; 0: none.
  std::atomic<std::int64_t> counted_by{0};

 private:
  bool is_first(const Waiter& waiter) const { return waiters_.front() == &waiter; }

  Store& store_;
  mutable std::mutex mutex_;
  std::list<Waiter*> waiters_;
  SteadyTime nothing_before_{};
};

class RateQueues {
 public:
  explicit RateQueues(Store& store) : store_(store) {}
  std::shared_ptr<RateQueue> queue_of(const std::string& key);

 private:
  Store& store_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<RateQueue>> queues_;
};

}  // namespace sluice::lock
