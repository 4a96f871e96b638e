// Paul Hsieh's SuperFastHash, reading little endian.
#include "proxy/hash/functions.hpp"

namespace sluice::proxy::hashes {
namespace {

std::uint32_t byte_at(const char* at) noexcept { return static_cast<unsigned char>(*at); }
std::uint32_t two_bytes(const char* at) noexcept { return byte_at(at) | byte_at(at + 1) << 8; }

template <class Byte>
std::uint32_t with_tail(std::uint32_t hash, const char* tail, std::size_t size) noexcept {
  switch (size) {
    case 3:
      hash += two_bytes(tail);
      hash ^= hash << 16;
      hash ^= static_cast<std::uint32_t>(static_cast<Byte>(tail[2])) << 18;
      return hash + (hash >> 11);
    case 2:
      hash += two_bytes(tail);
      hash ^= hash << 11;
      return hash + (hash >> 17);
    case 1:
      hash += byte_at(tail);
      hash ^= hash << 10;
      return hash + (hash >> 1);
    default: return hash;
  }
}

}  // namespace

template <class Byte>
std::uint32_t hsieh(std::string_view key) noexcept {
  std::uint32_t hash = 0;
  const char* at = key.data();
  for (std::size_t words = key.size() / 4; words > 0; --words, at += 4) {
    hash += two_bytes(at);
    hash = (hash << 16) ^ (two_bytes(at + 2) << 11) ^ hash;
    hash += hash >> 11;
  }
  hash = with_tail<Byte>(hash, at, key.size() % 4);

  hash ^= hash << 3;
  hash += hash >> 5;
  hash ^= hash << 4;
  hash += hash >> 17;
  hash ^= hash << 25;
  hash += hash >> 6;
  return hash;
}

template std::uint32_t hsieh<signed char>(std::string_view) noexcept;
template std::uint32_t hsieh<unsigned char>(std::string_view) noexcept;

}  // namespace sluice::proxy::hashes
