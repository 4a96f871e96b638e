/// Who holds or waits, for people: what `info()` and `sluice locks` show.
#pragma once

#include <string>
#include <string_view>

#include "sluice/held.hpp"

namespace sluice::lock {

/// "HOST PID ACTOR LABEL": the actor is the kernel's id of the calling thread as t<number>, or "-"
/// for an Owner, who is no thread. `label` may hold any bytes.
std::string holder_text(bool is_owner, std::string_view label);
/// The inverse. Text of another form has its place in the label.
HolderData holder_data(std::string_view text);

/// The name of this program, which is the label of who gives none.
const std::string& program_name();

}  // namespace sluice::lock
