/// Has this process been forked since? Sockets and threads do not survive a fork(); who owns some
/// asks.
#pragma once

namespace sluice {

/// How many fork()s lie between the start of the first program and this process. O(1), no system
/// call.
unsigned fork_count() noexcept;

}  // namespace sluice
