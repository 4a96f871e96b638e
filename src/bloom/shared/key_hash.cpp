#include "bloom/shared/key_hash.hpp"

#include <highwayhash/highwayhash_target.h>
#include <highwayhash/instruction_sets.h>

#include <algorithm>

#include "base/text.hpp"

namespace sluice::bloom {
namespace {

// Kryo 5 as Redisson sets it up: classes need no registration, objects have no references. An
// object begins with the number of its class, two above that of the registration.
constexpr char kryo_int = 2;
constexpr char kryo_string = 3;
constexpr char kryo_long = 9;
constexpr unsigned char more = 0x80;

/// Seven bits a byte, the low ones first; the ninth byte has eight.
void add_varint(std::string& bytes, std::uint64_t number) {
  for (int i = 0; i < 8 && number >= more; ++i, number >>= 7)
    bytes += static_cast<char>(number | more);
  bytes += static_cast<char>(number);
}

/// Small numbers of both signs are short.
std::uint64_t zigzag(std::int64_t number) noexcept {
  return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
}
std::uint32_t zigzag(std::int32_t number) noexcept {
  return (static_cast<std::uint32_t>(number) << 1) ^ static_cast<std::uint32_t>(number >> 31);
}

/// The first byte has the flag of a string that is not in ASCII, six bits, and whether more follow.
void add_flagged_varint(std::string& bytes, std::uint64_t number) {
  const auto low = static_cast<unsigned char>(0x80 | (number & 0x3f));
  if (number >> 6 == 0) {
    bytes += static_cast<char>(low);
    return;
  }
  bytes += static_cast<char>(low | 0x40);
  add_varint(bytes, number >> 6);
}

/// A UTF-16 unit in 1 to 3 bytes.
void add_unit(std::string& bytes, unsigned unit) {
  if (unit < 0x80) {
    bytes += static_cast<char>(unit);
  } else if (unit < 0x800) {
    bytes += static_cast<char>(0xc0 | unit >> 6);
    bytes += static_cast<char>(0x80 | (unit & 0x3f));
  } else {
    bytes += static_cast<char>(0xe0 | unit >> 12);
    bytes += static_cast<char>(0x80 | (unit >> 6 & 0x3f));
    bytes += static_cast<char>(0x80 | (unit & 0x3f));
  }
}

/// The character that `text` begins with. REQUIRES: it is UTF-8 and has `length` bytes.
unsigned code_point(std::string_view text, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (length == 1) return byte(0);
  unsigned point = byte(0) & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) point = point << 6 | (byte(i) & 0x3f);
  return point;
}

bool is_ascii(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// As Kryo's Output.writeString().
void add_string(std::string& bytes, std::string_view text) {
  if (text.empty()) {
    bytes += static_cast<char>(0x81);
    return;
  }
  if (text.size() > 1 && text.size() <= 32 && is_ascii(text)) {
    bytes += text;
    bytes.back() = static_cast<char>(static_cast<unsigned char>(bytes.back()) | 0x80);
    return;
  }
  std::string units;
  std::uint64_t count = 0;
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0)
      throw Error{Errc::bad_argument,
                  "a key of a Bloom filter with BloomCodec::kryo5 must be UTF-8, as Java's texts "
                  "are: use BloomCodec::string for bytes"};
    const unsigned point = code_point(text, length);
    if (point >= 0x10000) {
      add_unit(units, 0xd800 + ((point - 0x10000) >> 10));
      add_unit(units, 0xdc00 + ((point - 0x10000) & 0x3ff));
      count += 2;
    } else {
      add_unit(units, point);
      ++count;
    }
    text.remove_prefix(length);
  }
  add_flagged_varint(bytes, count + 1);
  bytes += units;
}

struct Kryo {
  std::string& bytes;

  void operator()(std::string_view text) const {
    bytes += kryo_string;
    add_string(bytes, text);
  }
  void operator()(std::int32_t number) const {
    bytes += kryo_int;
    add_varint(bytes, zigzag(number));
  }
  void operator()(std::int64_t number) const {
    bytes += kryo_long;
    add_varint(bytes, zigzag(number));
  }
};

}  // namespace

std::string_view encoded(const BloomKey& key, BloomCodec codec, std::string& scratch) {
  scratch.clear();
  if (codec == BloomCodec::kryo5) {
    std::visit(Kryo{scratch}, key.content());
    return scratch;
  }
  if (const auto* const text = std::get_if<std::string_view>(&key.content())) return *text;
  const auto* const small = std::get_if<std::int32_t>(&key.content());
  scratch = std::to_string(small ? *small : std::get<std::int64_t>(key.content()));
  return scratch;
}

KeyHash hash_of(std::string_view bytes) noexcept {
  using highwayhash::HHKey;
  using highwayhash::HHResult128;
  alignas(32) static constexpr HHKey redisson{0x9e3779b97f4a7c15, 0xf39cc0605cedc834,
                                              0x1082276bf3a27251, 0xf86c6a11d0c18e95};
  alignas(32) HHResult128 hash;
  highwayhash::InstructionSets::Run<highwayhash::HighwayHash>(redisson, bytes.data(), bytes.size(),
                                                              &hash);
  return {hash[0], hash[1]};
}

KeyHash hash_of(const BloomKey& key, BloomCodec codec) {
  std::string scratch;
  return hash_of(encoded(key, codec, scratch));
}

}  // namespace sluice::bloom
