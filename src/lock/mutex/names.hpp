/// What a lock is called in Redis: Redisson's keys and channel, and ours beside them.
#pragma once

#include <string>

namespace sluice::lock {

struct Names {
  /// Throws Error (bad_argument) as checked_name().
  explicit Names(std::string name);

  std::string key;      ///< the name itself
  std::string token;    ///< the fencing counter
  std::string channel;  ///< where a release is published
  std::string queue;    ///< of the processes that wait
  std::string waiters;  ///< who has been waiting for long, for people
};

}  // namespace sluice::lock
