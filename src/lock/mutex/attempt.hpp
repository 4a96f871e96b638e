/// The steps of Mutex that ask the server once.
#pragma once

#include <memory>

#include "lock/hold/hold.hpp"
#include "lock/hold/owner.hpp"

namespace sluice::lock {

/// Whoever wants to get in, and by what request: all attempts of one verb are copies of one
/// request.
struct Entrant {
  std::shared_ptr<OwnerState> owner;  ///< null: somebody new
  std::string owner_id;
  std::string request = new_request_id();
};

struct Attempt {
  std::shared_ptr<Hold> hold;        ///< null: refused
  std::chrono::milliseconds left{};  ///< of the lease that is in the way; -1: without end
};

/// Asks for a free lock. When it fails and may have succeeded, the hold is taken back in the
/// background. `who` is used up by a grant. The references must live until the Task has ended.
Task<Attempt> attempt(Entrant& who, const std::shared_ptr<Watchdog>& watchdog,
                      const std::shared_ptr<const Names>& names, const Terms& terms);

/// Enters `hold` once more. False: it is over.
Task<bool> enter_again(std::shared_ptr<Hold> hold);

/// Leaves `hold`, and ends it with the last entry.
Task<ReleaseOutcome> leave(std::shared_ptr<Hold> hold);
/// The same in the background: sent at once, the reply not waited for. Never throws.
void leave_in_background(std::shared_ptr<Hold> hold) noexcept;

}  // namespace sluice::lock
