// Bob Jenkins' one-at-a-time.
#include "proxy/hash/functions.hpp"

namespace sluice::proxy::hashes {

template <class Byte>
std::uint32_t one_at_a_time(std::string_view key) noexcept {
  std::uint32_t hash = 0;
  for (const char byte : key) {
    hash += static_cast<std::uint32_t>(static_cast<Byte>(byte));
    hash += hash << 10;
    hash ^= hash >> 6;
  }
  hash += hash << 3;
  hash ^= hash >> 11;
  hash += hash << 15;
  return hash;
}

template std::uint32_t one_at_a_time<signed char>(std::string_view) noexcept;
template std::uint32_t one_at_a_time<unsigned char>(std::string_view) noexcept;

}  // namespace sluice::proxy::hashes
