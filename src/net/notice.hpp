/// What the process tells the service manager that has started it: sd_notify(3), without its
/// library.
///
///     READY=1                it serves
///     RELOADING=1, READY=1   before and after a reload, one that is refused too
///     MAINPID=4711           an upgrade: the successor serves, and is the service from now on
///     STOPPING=1             it ends
///
/// All of it comes from the process that is the service at that time (NotifyAccess=main).
#pragma once

#include <string_view>

namespace sluice::net {

/// Sends `state` to the socket that NOTIFY_SOCKET names, a path or (@...) an abstract name; without
/// one it does nothing. A failure is logged. May block for a second, when the manager does not
/// read.
void tell_manager(std::string_view state);

}  // namespace sluice::net
