/// What a process asks about itself.
#pragma once

#include <string>

namespace sluice {

/// How many fork()s lie between the start of the first program and this process. Sockets and
/// threads do not survive a fork(); their owners compare this. O(1), no system call.
unsigned fork_count() noexcept;

/// The name of this machine; "unknown" where it has none.
std::string host_name();

}  // namespace sluice
