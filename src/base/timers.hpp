/// The timers of system_clock(), as those see them whose objects they use.
#pragma once

namespace sluice {

/// Returns when the callback that runs now, if one does, has returned: what it uses may end then.
/// Returns at once on a thread that others depend on (see NoBlocking), such as the timers' own.
void await_running_timer() noexcept;

}  // namespace sluice
