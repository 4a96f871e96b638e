/// What a semaphore is called in Redis: Redisson's keys and channel, and ours beside them.
#pragma once

#include <string>
#include <string_view>

namespace sluice::lock {

struct PoolNames {
  std::string free;     ///< the name itself: how many permits are free
  std::string holds;    ///< sorted set, by the end of each
  std::string queue;    ///< of those who wait
  std::string people;   ///< who holds which permit, for people; of a PermitSemaphore
  std::string turns;    ///< of programs that do not know the queue
  std::string channel;  ///< where it is published how many are free
  std::string done;     ///< what the keys of answers begin with

  /// Of a Semaphore, and of a PermitSemaphore. Throws Error (bad_argument) as checked_name().
  static PoolNames counted(std::string name);
  static PoolNames identified(std::string name);

  /// Where the answer to a request is kept for its copies.
  std::string answer(std::string_view request) const;
};

}  // namespace sluice::lock
