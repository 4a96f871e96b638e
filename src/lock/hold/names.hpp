/// What a lock is called in Redis: Redisson's keys and channel.
#pragma once

#include <string>

namespace sluice::lock {

struct Names {
  /// Throws Error (bad_argument) for an empty name and for one above `longest`.
  explicit Names(std::string name);

  std::string key;      ///< the name itself
  std::string token;    ///< the fencing counter
  std::string channel;  ///< where a release is published

  static constexpr std::size_t longest = 1 << 20;
};

/// A name for messages: printable, at most 200 bytes.
std::string quoted(const std::string& name);

}  // namespace sluice::lock
