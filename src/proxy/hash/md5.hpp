/// MD5 (RFC 1321), for places on the ring, never for security. Our own, since it must give the same
/// where the system's cryptography refuses it (FIPS), and takes no allocation for a key.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::proxy {

/// The digest as four words; their bytes, little endian, one after another are the 16 bytes that
/// others print.
std::array<std::uint32_t, 4> md5_words(std::string_view bytes) noexcept;

}  // namespace sluice::proxy
