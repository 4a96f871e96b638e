/// Names in the log of a limiter.
#pragma once

#include <string>

namespace sluice::lock {

/// 16 bytes that no other request has, as Redisson wants them.
std::string new_permit_id();
/// This process, as a client of limiters: a UUID; another one in a forked child.
std::string process_client();

}  // namespace sluice::lock
