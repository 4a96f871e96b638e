/// What a read-write lock is called in Redis: Redisson's keys and channel, and ours beside them.
#pragma once

#include <string>

namespace sluice::lock {

struct SharedNames {
  /// Throws Error (bad_argument) for an empty name and for one that is too long.
  explicit SharedNames(std::string name);

  std::string key;        ///< the name itself
  std::string hold_keys;  ///< what the hold keys of the readers begin with
  std::string token;      ///< the fencing counter of the writers
  std::string channel;    ///< where the end of a hold is published
  std::string writers;    ///< tickets of those that wait to write
  std::string readers;    ///< and of those that wait to read
};

}  // namespace sluice::lock
