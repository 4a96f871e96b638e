/// What the holds of a pool are called on the server; see lock/semaphore/holds.lua.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lock/hold/hold.hpp"
#include "sluice/permit_semaphore.hpp"

namespace sluice::lock {

/// The text that goes with a hold: "count lease claim PEOPLE", times in ms.
std::string pool_holder(std::uint32_t permits, const Terms& terms, std::string_view people);
/// The same for a hold that is nobody's Held.
std::string pool_holder(std::uint32_t permits, std::chrono::milliseconds lease,
                        std::string_view people);

/// What of a holder's text is for people.
std::string_view people_of(std::string_view holder);
/// How many permits it is for.
std::uint32_t count_of(std::string_view holder);

/// Names one request for permits with ids: 12 bytes, in hex.
std::string new_permit_request();
/// The id of its permit `index`, from 1 on.
PermitId permit_of(std::string_view request, std::uint32_t index);

/// The member of a permit: its 16 bytes.
std::string member_of(const PermitId& permit);

/// All members that a request leads to: those of a request for permits with ids, that of one such
/// permit (whose request is its id), or that of a Semaphore.
std::vector<std::string> members_of(const Identity& who);

}  // namespace sluice::lock
