// What twemproxy calls FNV-1a of 64 bits: start and prime are cut to 32 bits before the work. As
// multiplication and xor carry nothing downwards, it is the low half of the real one.
#include "proxy/hash/functions.hpp"

namespace sluice::proxy::hashes {

template <class Byte>
std::uint32_t fnv1a_64(std::string_view key) noexcept {
  std::uint32_t hash = 0x84222325;
  for (const char byte : key) {
    hash ^= static_cast<std::uint32_t>(static_cast<Byte>(byte));
    hash *= 0x1b3;
  }
  return hash;
}

template std::uint32_t fnv1a_64<signed char>(std::string_view) noexcept;
template std::uint32_t fnv1a_64<unsigned char>(std::string_view) noexcept;

}  // namespace sluice::proxy::hashes
