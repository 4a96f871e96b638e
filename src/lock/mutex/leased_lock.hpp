/// A hold of a Mutex that hangs on no process: for programs that ask through another one, which may
/// be a different one each time.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lock/mutex/names.hpp"
#include "lock/wait/message_signal.hpp"
#include "sluice/expected.hpp"
#include "sluice/held.hpp"
#include "sluice/lock_info.hpp"

namespace sluice::lock {

/// The owner that a wish is: whoever asks for the same has the same. It has the form of an owner of
/// ours, so that programs in Java see a lock of theirs.
OwnerId owner_of_wish(std::string_view wish);
/// "<uuid>:1", as owner_of_wish() makes it.
bool is_owner_of_wish(std::string_view text);

struct LeasedHold {
  FencingToken token;
  bool is_new = true;  ///< false: an earlier copy of this request has got it
};

struct LeaseWish {
  OwnerId owner;
  std::chrono::milliseconds lease;
  std::string label;  ///< for people
};

/// What another holds: for how much longer, as long as nobody renews it. Empty: it has no end.
struct HeldElsewhere {
  std::optional<std::chrono::milliseconds> left;
};

/// Guarantee: as of Mutex, of which this is another entrance: one holder at a time, tokens rise. A
///   wish has one hold however often it is asked for, until that ended. It is renewed and released
///   by its owner's name alone, at any process.
/// Not guaranteed: that the holder knows when its lease is over: it has to count, from before it
///   asked. A place among those that wait: a release leaves the lock to those here as to programs
///   that are not ours (Mutex, HandOff::across_processes). A wish that is asked for after its hold
///   ended is granted anew.
/// Threads: any. The Store must outlive it and its Tasks, it its Tasks.
/// In Redis: as Mutex, and the field sluice:repeats of the hash. One round trip each.
class LeasedLock {
 public:
  /// Throws Error (bad_argument) for a name that is empty or too long, or whose keys would lie in
  /// several slots.
  LeasedLock(Store& store, std::string name);

  Task<Expected<LeasedHold, HeldElsewhere>> try_acquire(LeaseWish wish);
  /// Asks again when `released` hears of a release, until `until` (steady) or `stop`. REQUIRES:
  /// nobody else uses `released` meanwhile; it is of this Store alone, and of this lock.
  Task<Expected<LeasedHold, HeldElsewhere>> acquire(LeaseWish wish,
                                                    std::shared_ptr<MessageSignal> released,
                                                    SteadyTime until, std::stop_token stop);
  /// The lease begins anew. Empty: the hold is lost.
  Task<std::optional<FencingToken>> renew(OwnerId owner, std::chrono::milliseconds lease);
  /// False: there was no such hold.
  Task<bool> release(OwnerId owner);
  /// The same where nobody was told of the hold of this token. One that was asked for again stays.
  Task<bool> withdraw(OwnerId owner, FencingToken token);
  Task<LockInfo> info();

  const std::string& name() const noexcept { return names_.key; }

 private:
  std::vector<std::string_view> keys() const {
    return {names_.key, names_.token, names_.queue, names_.looks};
  }

  Store& store_;
  const Names names_;
};

}  // namespace sluice::lock
