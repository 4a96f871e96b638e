/// TCP ports of 127.0.0.1 for what a test starts.
#pragma once

#include <cstdint>

namespace sluice::test {

/// A port that nobody listens on. No other test is given it, in this process or another, as long as
/// this process lives; else two tests might start their servers on one port, and one of them talk
/// with the other's. Nor is it one that the system gives to outgoing connections, so a server that
/// is down for a moment comes back to it.
/// Throws std::runtime_error when there is none.
std::uint16_t free_port();

}  // namespace sluice::test
