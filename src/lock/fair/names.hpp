/// What a fair lock is called in Redis: as a Mutex, and its queue.
#pragma once

#include "lock/mutex/names.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

struct FairNames {
  /// Throws Error (bad_argument) as Names.
  explicit FairNames(const std::string& name)
      : lock(name),
        queue(key_with_prefix("redisson_lock_queue", name)),
        deadlines(key_with_prefix("redisson_lock_timeout", name)),
        tickets(key_with_prefix("sluice_lock_tickets", name)) {}

  /// Where a program with Redisson tells that waiter of its release.
  std::string channel_of(const std::string& owner) const { return lock.channel + ':' + owner; }

  Names lock;
  std::string queue;      ///< Redisson's: owners, first come first
  std::string deadlines;  ///< Redisson's: until when each of them waits
  std::string tickets;    ///< ours: what a release needs to know of who waits
};

}  // namespace sluice::lock
