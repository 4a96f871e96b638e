/// The twelve key hashes of twemproxy, bit for bit as it computes them on x86-64: 32 bits each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::proxy {

enum class Hash : std::uint8_t {
  one_at_a_time,
  md5,
  crc16,
  crc32,
  crc32a,
  fnv1_64,
  fnv1a_64,
  fnv1_32,
  fnv1a_32,
  hsieh,
  murmur,
  jenkins
};

/// How bytes from 0x80 on count where the function adds a `char`: signed on x86-64 (the rule),
/// unsigned on ARM.
enum class CharSign : std::uint8_t { is_signed, is_unsigned };

using HashFunction = std::uint32_t (*)(std::string_view key) noexcept;

/// Never null. An empty key is not for it: twemproxy gives 0 without asking.
HashFunction hash_function(Hash hash, CharSign sign = CharSign::is_signed) noexcept;

std::string_view to_string(Hash hash) noexcept;
/// By its name in the configuration file.
std::optional<Hash> find_hash(std::string_view name) noexcept;
std::span<const Hash> all_hashes() noexcept;

/// MD5 for places on the ring, never for security: the digest as four little-endian words.
std::array<std::uint32_t, 4> md5_words(std::string_view bytes) noexcept;

}  // namespace sluice::proxy
