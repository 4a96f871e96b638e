/// A fair lock on the embedded engine and virtual time, and what Redisson does to it.
#pragma once

#include <deque>
#include <list>
#include <vector>

#include "lock/virtual_lock.hpp"
#include "redisson/fair_acquire.lua.hpp"
#include "redisson/fair_give_up.lua.hpp"
#include "redisson/fair_release.lua.hpp"

namespace sluice {

/// A process of ours, with a channel of its own.
struct FairProcess {
  explicit FairProcess(Store& store, FairMutexOptions options = {})
      : line(store), mutex(line, "stock", std::move(options)) {}

  test::FaultyStore line;
  FairMutex mutex;
};

class VirtualFair : public VirtualLock {
 protected:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds patience{300'000};  // Redisson's, with each that waits

  Milliseconds now() const {
    return std::chrono::floor<Milliseconds>(clock_.wall().time_since_epoch());
  }
  std::vector<std::string> queue() {
    const Value owners = store_->run({"LRANGE", queue_, "0", "-1"}).get();
    std::vector<std::string> texts;
    for (const Value& owner : owners.as_items()) texts.push_back(owner.as_text());
    return texts;
  }
  /// How long Redisson has still patience with a waiter.
  Milliseconds patience_with(const std::string& owner) {
    const Value score = store_->run({"ZSCORE", deadlines_, owner}).get();
    return Milliseconds{static_cast<std::int64_t>(score.as_number())} - now();
  }
  void expect_nobody_waits() {
    EXPECT_FALSE(exists(queue_));
    EXPECT_FALSE(exists(deadlines_));
    const Value tickets = store_->run({"HKEYS", tickets_}).get();
    for (const Value& field : tickets.as_items())
      EXPECT_TRUE(field.as_text().starts_with("sluice:inbox:")) << "a promise, which ends";
  }

  // A thread of a Redisson client, by its steps alone. `skew`: of its clock.
  /// Null: in; else it is in the queue, or was refused if it does not queue.
  Value java_acquire(const std::string& owner, Milliseconds skew = {}, bool queues = true) {
    const std::string wall = std::to_string((now() + skew).count());
    return store_
        ->run(scripts::redisson_fair_acquire, {"stock", queue_, deadlines_},
              {"30000", owner, "300000", wall, queues ? "queue" : "once"})
        .get();
  }
  Value java_release(const std::string& owner, Milliseconds skew = {}) {
    const std::string wall = std::to_string((now() + skew).count());
    const std::string latch = "latch:" + std::to_string(++latches_);
    return store_
        ->run(scripts::redisson_fair_release, {"stock", queue_, deadlines_, channels_, latch},
              {owner, "30000", "18000", wall})
        .get();
  }
  Value java_give_up(const std::string& owner) {
    return store_->run(scripts::redisson_fair_give_up, {queue_, deadlines_}, {owner, "300000"})
        .get();
  }
  /// Hears what a waiter of Redisson is told.
  Listener java_ear(const std::string& owner, int& heard) {
    return store_->listen(channels_ + ':' + owner, [&heard](const Message&) { ++heard; }).get();
  }

  /// A waiter of a process that is dead, or of one that stands still if somebody listens.
  void queue_up(const std::string& owner, const std::string& inbox) {
    store_->run({"RPUSH", queue_, owner}).get();
    store_->run({"ZADD", deadlines_, std::to_string((now() + patience).count()), owner}).get();
    store_->run({"HSET", tickets_, owner, "r-" + owner + " 1500 1 " + inbox + " host 1 t1 label"})
        .get();
  }
  Listener silent_inbox(const std::string& inbox) {
    return store_->listen(inbox, [](const Message&) {}).get();
  }

  const std::string queue_ = "redisson_lock_queue:{stock}";
  const std::string deadlines_ = "redisson_lock_timeout:{stock}";
  const std::string tickets_ = "sluice_lock_tickets:{stock}";
  const std::string channels_ = "redisson_lock__channel:{stock}";
  const std::string java_ = "6f1c0e7a-3c57-4b5e-9d0b-2a6c54ad1f00:42";
  const std::string other_java_ = "6f1c0e7a-3c57-4b5e-9d0b-2a6c54ad1f00:43";
  int latches_ = 0;
};

}  // namespace sluice
