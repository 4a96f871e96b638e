// What the functions are known to give elsewhere; that they are twemproxy's is shown by the maps of
// ../ring.
#include "proxy/hash/hash.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace sluice::proxy {
namespace {

std::uint32_t hash_of(Hash hash, std::string_view key, CharSign sign = CharSign::is_signed) {
  return hash_function(hash, sign)(key);
}

std::string md5_hex(std::string_view bytes) {
  std::string text;
  for (auto word : md5_words(bytes))
    for (int i = 0; i < 4; ++i, word >>= 8) text += fmt::format("{:02x}", word & 0xff);
  return text;
}

TEST(Md5, TestSuiteOfItsRfc) {
  EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(md5_hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5_hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5_hex("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(md5_hex("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "d174ab98d277d9f5a5611c2c9f419d9f");
  std::string digits;
  for (int i = 0; i < 8; ++i) digits += "1234567890";
  EXPECT_EQ(md5_hex(digits), "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, TheLengthMovesToABlockOfItsOwnAtFiftySixBytes) {
  EXPECT_EQ(md5_hex(std::string(55, 'x')), "04364420e25c512fd958a70738aa8f72");
  EXPECT_EQ(md5_hex(std::string(56, 'x')), "668a72d5ba17f08e62dabcafad6db14b");
  EXPECT_EQ(md5_hex(std::string(64, 'x')), "c1bb4f81d892b2d57947682aeb252456");
}

TEST(Hash, KnownValues) {
  EXPECT_EQ(hash_of(Hash::crc32a, "123456789"), 0xcbf43926U);
  EXPECT_EQ(hash_of(Hash::crc32, "123456789"), 0xcbf43926U >> 16 & 0x7fff);
  EXPECT_EQ(hash_of(Hash::crc16, "123456789") & 0xffff, 0x31c3U);
  EXPECT_EQ(hash_of(Hash::fnv1_32, "foobar"), 0x31f0b262U);
  EXPECT_EQ(hash_of(Hash::fnv1a_32, "foobar"), 0xbf9cf968U);
  EXPECT_EQ(hash_of(Hash::fnv1_64, "foobar"), 0xa4dda9c2U);
  EXPECT_EQ(hash_of(Hash::fnv1a_64, "foobar"), 0xf73967e8U);
  EXPECT_EQ(hash_of(Hash::md5, "abc"), 0x98500190U);
  EXPECT_EQ(hash_of(Hash::one_at_a_time, "a"), 0xca2e9442U);
  EXPECT_EQ(hash_of(Hash::one_at_a_time, "The quick brown fox jumps over the lazy dog"),
            0x519e91f5U);
}

TEST(Hash, BytesAboveSevenBitsAreSignedUnlessAskedOtherwise) {
  const std::string_view key = "\xc3\xa9t\xe9";
  for (const auto hash : all_hashes()) {
    const bool adds_chars = hash == Hash::one_at_a_time || to_string(hash).starts_with("fnv");
    EXPECT_EQ(hash_of(hash, key) != hash_of(hash, key, CharSign::is_unsigned), adds_chars)
        << to_string(hash);
    EXPECT_EQ(hash_of(hash, "plain"), hash_of(hash, "plain", CharSign::is_unsigned))
        << to_string(hash);
  }
  // Of hsieh's bytes it is the third of a tail of three.
  EXPECT_NE(hash_of(Hash::hsieh, "ab\xe9"), hash_of(Hash::hsieh, "ab\xe9", CharSign::is_unsigned));
  EXPECT_EQ(hash_of(Hash::hsieh, "a\xe9z"), hash_of(Hash::hsieh, "a\xe9z", CharSign::is_unsigned));
}

TEST(Hash, HasTwelveFunctionsFoundByName) {
  EXPECT_EQ(all_hashes().size(), 12U);
  for (const auto hash : all_hashes()) EXPECT_EQ(find_hash(to_string(hash)), hash);
  EXPECT_EQ(find_hash("MD5"), std::nullopt);
  EXPECT_EQ(find_hash(""), std::nullopt);
}

}  // namespace
}  // namespace sluice::proxy
