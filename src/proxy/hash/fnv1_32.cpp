// FNV-1 of 32 bits: multiply, then xor.
#include "proxy/hash/functions.hpp"

namespace sluice::proxy::hashes {

template <class Byte>
std::uint32_t fnv1_32(std::string_view key) noexcept {
  std::uint32_t hash = 0x811c9dc5;
  for (const char byte : key) {
    hash *= 0x01000193;
    hash ^= static_cast<std::uint32_t>(static_cast<Byte>(byte));
  }
  return hash;
}

template std::uint32_t fnv1_32<signed char>(std::string_view) noexcept;
template std::uint32_t fnv1_32<unsigned char>(std::string_view) noexcept;

}  // namespace sluice::proxy::hashes
