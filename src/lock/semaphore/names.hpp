/// What semaphores, holds and permits are called in Redis. Redisson's keys, channel and permits,
/// and ours beside them; see lock/semaphore/holds.lua.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lock/hold/hold.hpp"
#include "sluice/permit_semaphore.hpp"

namespace sluice::lock {

struct PermitNames {
  std::string free;     ///< the name itself: how many permits are free
  std::string holds;    ///< sorted set, by the end of each
  std::string queue;    ///< of the waiters
  std::string people;   ///< who holds which permit, for people; of a PermitSemaphore
  std::string turns;    ///< of programs that do not know the queue
  std::string channel;  ///< where the number of free permits is published
  std::string done;     ///< what the keys of answers begin with

  /// Of a Semaphore, and of a PermitSemaphore. Throws Error (bad_argument) as checked_name().
  static PermitNames counted(std::string name);
  static PermitNames identified(std::string name);

  /// Where the answer to a request is kept for its copies.
  std::string answer(std::string_view request) const;
};

/// The text that goes with a hold: "count lease claim PEOPLE", times in ms.
std::string permit_holder(std::uint32_t permits, const Terms& terms, std::string_view people);

/// The last part of a holder's text.
std::string_view people_of(std::string_view holder);
/// The first part: the number of permits.
std::uint32_t count_of(std::string_view holder);

/// Names one request for permits with ids: 12 bytes, in hex.
std::string new_permit_request();
/// Of the same kind: for permits with ids, or of a Semaphore.
std::string new_request_like(std::string_view request);
/// The request that a hold came of: that of a permit with an id is its id.
std::string_view request_of_hold(std::string_view request);
/// The id of its permit `index`, from 1 on.
PermitId permit_of(std::string_view request, std::uint32_t index);

/// The member of a permit: its 16 bytes.
std::string member_of(const PermitId& permit);

/// All members that a request leads to: those of a request for permits with ids, that of one such
/// permit (its request is its id), or that of a Semaphore.
std::vector<std::string> members_of(const Identity& who);

}  // namespace sluice::lock
