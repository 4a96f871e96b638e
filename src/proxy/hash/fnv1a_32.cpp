// FNV-1a of 32 bits: xor, then multiply.
#include "proxy/hash/functions.hpp"

namespace sluice::proxy::hashes {

template <class Byte>
std::uint32_t fnv1a_32(std::string_view key) noexcept {
  std::uint32_t hash = 0x811c9dc5;
  for (const char byte : key) {
    hash ^= static_cast<std::uint32_t>(static_cast<Byte>(byte));
    hash *= 0x01000193;
  }
  return hash;
}

template std::uint32_t fnv1a_32<signed char>(std::string_view) noexcept;
template std::uint32_t fnv1a_32<unsigned char>(std::string_view) noexcept;

}  // namespace sluice::proxy::hashes
