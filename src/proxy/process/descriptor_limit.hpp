/// How many files and sockets the process may have.
#pragma once

#include <cstddef>

#include "proxy/config/config.hpp"

namespace sluice::proxy {

/// As many as the system lets this user have: the soft limit becomes the hard one.
void raise_descriptor_limit() noexcept;

/// How many clients the limit leaves room for, by twemproxy's rule: all descriptors but those of
/// the connections to servers, one to listen for each pool and 32 for the rest.
std::size_t clients_within_limit(const Config& config) noexcept;

}  // namespace sluice::proxy
