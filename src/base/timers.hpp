/// The timers of system_clock(), as those see them whose objects they use.
#pragma once

namespace sluice {

/// Takes from the system what timers need, so that setting one does not fail for want of it later.
/// Throws Error{out_of_space}.
void ready_timers();

/// Returns when the callback that runs now, if one does, has returned: what it uses may end then.
/// Returns at once on a thread that others depend on (see NoBlocking), such as the timers' own.
void await_running_timer() noexcept;

}  // namespace sluice
