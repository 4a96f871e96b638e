/// What a key of a shared filter becomes: bytes by the codec, HighwayHash-128 of them, and the
/// indexes of its bits; all as in Redisson 4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/shared_bloom_filter.hpp"

namespace sluice::bloom {

/// REQUIRES: `scratch` lives as long as the result is used. Throws Error (bad_argument): a text
/// that is no UTF-8, for kryo5.
std::string_view encoded(const BloomKey& key, BloomCodec codec, std::string& scratch);

struct KeyHash {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  friend bool operator==(const KeyHash&, const KeyHash&) = default;
};

KeyHash hash_of(std::string_view bytes) noexcept;
KeyHash hash_of(const BloomKey& key, BloomCodec codec);

/// The remainder of a division by the same number, by a multiplication. REQUIRES: what is divided
/// is below 2^63.
class Modulus {
 public:
  Modulus() = default;
  explicit Modulus(std::uint64_t divisor) noexcept
      : divisor_(divisor), inverse_(~std::uint64_t{0} / divisor) {}

  std::uint64_t of(std::uint64_t number) const noexcept {
    __extension__ using Wide = unsigned __int128;
    const auto quotient = static_cast<std::uint64_t>((Wide{number} * inverse_) >> 64);
    const std::uint64_t rest = number - quotient * divisor_;
    return rest >= divisor_ ? rest - divisor_ : rest;
  }

 private:
  std::uint64_t divisor_ = 1;
  std::uint64_t inverse_ = ~std::uint64_t{0};
};

/// Calls `use(index)` for each of the bits of a key until it returns false. False: it did.
template <class Use>
bool each_index(const KeyHash& hash, const Modulus& bits, unsigned hashes, Use use) {
  constexpr std::uint64_t without_sign = ~std::uint64_t{0} >> 1;
  std::uint64_t sum = hash.first;
  for (unsigned i = 0; i < hashes; ++i) {
    if (!use(bits.of(sum & without_sign))) return false;
    sum += i % 2 == 0 ? hash.second : hash.first;
  }
  return true;
}

}  // namespace sluice::bloom
