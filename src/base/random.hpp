/// Randomness: unguessable ids from the kernel, jitter from a cheap generator of each thread.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

/// 16 random bytes of the kernel as 32 hex digits. Throws std::system_error where the kernel has
/// none.
std::string random_hex_128();
/// A random (version 4) UUID: 36 characters, lower case.
std::string random_uuid();
/// Uniform in [0, bound); for jitter and back-off, not for secrets. REQUIRES: bound > 0.
std::uint64_t random_below(std::uint64_t bound);

}  // namespace sluice
