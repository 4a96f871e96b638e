// FNV-1 of 64 bits: multiply, then xor; the low half is the hash.
#include "proxy/hash/functions.hpp"

namespace sluice::proxy::hashes {

template <class Byte>
std::uint32_t fnv1_64(std::string_view key) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : key) {
    hash *= 0x100000001b3;
    hash ^= static_cast<std::uint64_t>(static_cast<Byte>(byte));
  }
  return static_cast<std::uint32_t>(hash);
}

template std::uint32_t fnv1_64<signed char>(std::string_view) noexcept;
template std::uint32_t fnv1_64<unsigned char>(std::string_view) noexcept;

}  // namespace sluice::proxy::hashes
