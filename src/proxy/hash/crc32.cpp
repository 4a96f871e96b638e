// libmemcached's crc32: 15 bits of the CRC-32. The points of a ketama ring spread over 32 bits, so
// such hashes find only the first few of them: lint warns.
#include "proxy/hash/functions.hpp"

namespace sluice::proxy::hashes {

std::uint32_t crc32(std::string_view key) noexcept { return crc32a(key) >> 16 & 0x7fff; }

}  // namespace sluice::proxy::hashes
