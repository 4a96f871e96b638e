#include "proxy/hash/hash.hpp"

// MD5() is deprecated as cryptography; it takes no allocation, and works where OpenSSL's policy
// (FIPS) refuses EVP_md5().
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>

#include <algorithm>
#include <bit>

namespace sluice::proxy {
namespace {

// `Byte` is how a function that adds a `char` sees it: signed char (x86-64), unsigned char (ARM).

/// The first four bytes as a little-endian word; missing ones are zero.
std::uint32_t short_word_of(std::string_view bytes) noexcept {
  std::uint32_t word = 0;
  for (std::size_t i = std::min<std::size_t>(bytes.size(), 4); i-- > 0;)
    word = word << 8 | static_cast<unsigned char>(bytes[i]);
  return word;
}

/// The same of four bytes or more: the compiler makes one load of it.
std::uint32_t word_of(std::string_view bytes) noexcept {
  const auto at = [bytes](std::size_t i) {
    return std::uint32_t{static_cast<unsigned char>(bytes[i])};
  };
  return at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24;
}

/// Bob Jenkins' one-at-a-time.
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

/// FNV-1 multiplies, then adds the byte by xor; FNV-1a (`xor_first`) the other way round. Of 64
/// bits the low half is the hash.
template <class Word, Word start, Word prime, bool xor_first, class Byte>
std::uint32_t fnv(std::string_view key) noexcept {
  Word hash = start;
  for (const char byte : key) {
    if (!xor_first) hash *= prime;
    hash ^= static_cast<Word>(static_cast<Byte>(byte));
    if (xor_first) hash *= prime;
  }
  return static_cast<std::uint32_t>(hash);
}
using Narrow = std::uint32_t;
using Wide = std::uint64_t;
template <class Byte>
constexpr HashFunction fnv1_32 = fnv<Narrow, 0x811c9dc5, 0x01000193, false, Byte>;
template <class Byte>
constexpr HashFunction fnv1a_32 = fnv<Narrow, 0x811c9dc5, 0x01000193, true, Byte>;
template <class Byte>
constexpr HashFunction fnv1_64 = fnv<Wide, 0xcbf29ce484222325, 0x100000001b3, false, Byte>;
/// twemproxy cuts start and prime to 32 bits beforehand. As multiplication and xor carry nothing
/// downwards, the result is the low half of the real FNV-1a.
template <class Byte>
constexpr HashFunction fnv1a_64 = fnv<Narrow, 0x84222325, 0x1b3, true, Byte>;

/// What each byte adds to a CRC; `step` shifts the rest by one bit.
template <class Row>
constexpr std::array<Row, 256> crc_table(int shift, std::uint32_t (*step)(std::uint32_t)) {
  std::array<Row, 256> rows{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte << shift;
    for (int bit = 0; bit < 8; ++bit) rest = step(rest);
    rows[byte] = static_cast<Row>(rest);
  }
  return rows;
}

/// CRC-16 (CCITT, XMODEM's form) in an accumulator of 32 bits that is never cut: the upper half
/// keeps shifted history. So it is not the CRC-16 of Redis Cluster, though it uses that table.
std::uint32_t crc16(std::string_view key) noexcept {
  static constexpr auto table = crc_table<std::uint16_t>(
      8, [](std::uint32_t rest) { return (rest & 0x8000) != 0 ? rest << 1 ^ 0x1021 : rest << 1; });
  std::uint32_t crc = 0;
  for (const char byte : key)
    crc = crc << 8 ^ table[(crc >> 8 ^ static_cast<unsigned char>(byte)) & 0xff];
  return crc;
}

/// The CRC-32 of zip and Ethernet.
std::uint32_t crc32a(std::string_view key) noexcept {
  static constexpr auto table = crc_table<std::uint32_t>(
      0, [](std::uint32_t rest) { return (rest & 1) != 0 ? rest >> 1 ^ 0xedb88320 : rest >> 1; });
  std::uint32_t crc = 0xffffffff;
  for (const char byte : key)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

/// libmemcached's crc32: 15 bits of the CRC-32. The points of a ketama ring spread over 32 bits, so
/// such hashes find only the first few of them: lint warns.
std::uint32_t crc32(std::string_view key) noexcept { return crc32a(key) >> 16 & 0x7fff; }

std::uint32_t md5(std::string_view key) noexcept { return md5_words(key)[0]; }

/// Paul Hsieh's SuperFastHash, reading little endian.
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

/// Austin Appleby's MurmurHash2 of 32 bits, little endian, seeded by the length.
std::uint32_t murmur(std::string_view key) noexcept {
  constexpr std::uint32_t multiplier = 0x5bd1e995;
  const auto size = static_cast<std::uint32_t>(key.size());
  std::uint32_t hash = 0xdeadbeef * size ^ size;

  for (; key.size() >= 4; key.remove_prefix(4)) {
    std::uint32_t word = word_of(key) * multiplier;
    word ^= word >> 24;
    hash = hash * multiplier ^ word * multiplier;
  }
  if (!key.empty()) hash = (hash ^ short_word_of(key)) * multiplier;

  hash ^= hash >> 13;
  hash *= multiplier;
  return hash ^ hash >> 15;
}

/// Bob Jenkins' lookup3 (hashlittle), begun with 13.
struct Lookup3 {
  std::uint32_t a, b, c;

  void add(std::string_view block) noexcept {  // at most 12 bytes; missing ones are zero
    a += short_word_of(block);
    if (block.size() > 4) b += short_word_of(block.substr(4));
    if (block.size() > 8) c += short_word_of(block.substr(8));
  }

  void mix() noexcept {
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
  }

  void finish() noexcept {
    c ^= b, c -= std::rotl(b, 14);
    a ^= c, a -= std::rotl(c, 11);
    b ^= a, b -= std::rotl(a, 25);
    c ^= b, c -= std::rotl(b, 16);
    a ^= c, a -= std::rotl(c, 4);
    b ^= a, b -= std::rotl(a, 14);
    c ^= b, c -= std::rotl(b, 24);
  }
};

std::uint32_t jenkins(std::string_view key) noexcept {
  const auto start = 0xdeadbeef + static_cast<std::uint32_t>(key.size()) + 13;
  Lookup3 state{start, start, start};
  for (; key.size() > 12; key.remove_prefix(12)) {
    state.add(key.substr(0, 12));
    state.mix();
  }
  if (key.empty()) return state.c;
  state.add(key);
  state.finish();
  return state.c;
}

struct Row {
  Hash hash;
  std::string_view name;
  HashFunction of_signed;    // bytes as on x86-64
  HashFunction of_unsigned;  // as on ARM
};

template <HashFunction function>
constexpr Row plain(Hash hash, std::string_view name) {
  return {hash, name, function, function};
}

// In the order of the enumeration.
constexpr std::array rows{
    Row{Hash::one_at_a_time, "one_at_a_time", one_at_a_time<signed char>,
        one_at_a_time<unsigned char>},
    plain<md5>(Hash::md5, "md5"),
    plain<crc16>(Hash::crc16, "crc16"),
    plain<crc32>(Hash::crc32, "crc32"),
    plain<crc32a>(Hash::crc32a, "crc32a"),
    Row{Hash::fnv1_64, "fnv1_64", fnv1_64<signed char>, fnv1_64<unsigned char>},
    Row{Hash::fnv1a_64, "fnv1a_64", fnv1a_64<signed char>, fnv1a_64<unsigned char>},
    Row{Hash::fnv1_32, "fnv1_32", fnv1_32<signed char>, fnv1_32<unsigned char>},
    Row{Hash::fnv1a_32, "fnv1a_32", fnv1a_32<signed char>, fnv1a_32<unsigned char>},
    Row{Hash::hsieh, "hsieh", hsieh<signed char>, hsieh<unsigned char>},
    plain<murmur>(Hash::murmur, "murmur"),
    plain<jenkins>(Hash::jenkins, "jenkins"),
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (static_cast<std::size_t>(rows[i].hash) != i) return false;
  return true;
}
static_assert(in_order());

constexpr auto hashes_of_rows = [] {
  std::array<Hash, rows.size()> all{};
  std::ranges::transform(rows, all.begin(), &Row::hash);
  return all;
}();

const Row& row_of(Hash hash) noexcept { return rows[static_cast<std::size_t>(hash)]; }

}  // namespace

HashFunction hash_function(Hash hash, CharSign sign) noexcept {
  const auto& row = row_of(hash);
  return sign == CharSign::is_signed ? row.of_signed : row.of_unsigned;
}

std::string_view to_string(Hash hash) noexcept { return row_of(hash).name; }

std::optional<Hash> find_hash(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(rows, name, &Row::name);
  if (found == rows.end()) return std::nullopt;
  return found->hash;
}

std::span<const Hash> all_hashes() noexcept { return hashes_of_rows; }

std::array<std::uint32_t, 4> md5_words(std::string_view bytes) noexcept {
  std::array<unsigned char, MD5_DIGEST_LENGTH> digest{};
  ::MD5(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    words[i / 4] |= std::uint32_t{digest[i]} << 8 * (i % 4);
  return words;
}

}  // namespace sluice::proxy
