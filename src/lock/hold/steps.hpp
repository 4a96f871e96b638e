/// The steps that every hold takes, whatever it is of: granted, entered again, left.
#pragma once

#include <memory>

#include "lock/hold/hold.hpp"
#include "lock/hold/owner.hpp"
#include "lock/text.hpp"

namespace sluice::lock {

/// Makes a hold, and has it watched. Null: the grant took too long to get here, so that the hold is
/// not certain any more; the caller takes it back. `renew_at`: the first renewal comes not later
/// than that. `who` is moved from only if there is a hold.
std::shared_ptr<Hold> begin(std::shared_ptr<Resource> resource, Identity&& who, const Grant& grant,
                            const Terms& terms, SteadyTime renew_at = SteadyTime::max());

/// What to throw when begin() gave nothing.
Error granted_too_late(const Resource& resource, const Terms& terms);

/// Enters `hold` once more. False: it is over.
Task<bool> enter_again(std::shared_ptr<Hold> hold);

/// Leaves `hold`, and ends it with the last entry. What can be done without waiting is done at the
/// call: await it.
Task<ReleaseOutcome> leave(std::shared_ptr<Hold> hold, CallOptions options = {});
/// The same in the background: sent at once, the reply not waited for. Never throws.
void leave_in_background(std::shared_ptr<Hold> hold) noexcept;

/// Ends in the background what a request of unknown outcome may have left behind. Never throws.
/// When the server does not answer, it is asked again later (see PendingReleases). `is_reported`:
/// the log has that it failed before.
void take_back(const Resource& resource, const Identity& who) noexcept;
void take_back(Store& store, std::string name, std::string request, GiveUp give_up,
               bool is_reported = false) noexcept;
/// The same when the server is there again, after a failure that is reported.
void take_back_later(Store& store, const std::string& name, const std::string& request,
                     GiveUp give_up, const Error& failure);
/// The end of a hold is sent, or was: see PendingReleases.
void note_ended(const Hold& hold);
/// Whether a request that failed so may have left something behind that can be taken back.
bool may_have_left_something(const Error& failure) noexcept;

}  // namespace sluice::lock
