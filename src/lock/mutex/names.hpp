/// What a lock is called in Redis: Redisson's keys and channel, and ours beside them.
#pragma once

#include <string>

#include "lock/text.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

struct Names {
  /// Throws Error (bad_argument) as checked_name().
  explicit Names(std::string name)
      : key(checked_name("a lock", std::move(name))),
        token(key_with_prefix("redisson_lock_token", key)),
        channel(key_with_prefix("redisson_lock__channel", key)),
        queue(key_with_prefix("sluice_lock_queue", key)),
        looks(key_with_prefix("sluice_lock_looks", key)),
        waiters(key_with_prefix("sluice_lock_waiters", key)) {}

  std::string key;      ///< the name itself
  std::string token;    ///< the fencing counter
  std::string channel;  ///< where a release is published
  std::string queue;    ///< of the processes that wait
  std::string looks;    ///< until when each of them looks at the lock
  std::string waiters;  ///< who has been waiting for long, for people
};

}  // namespace sluice::lock
