#include "base/sha1.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// The vectors of FIPS 180-1, appendices A to C, and of the empty text.
TEST(Sha1, AnswersThePublishedVectors) {
  EXPECT_EQ(sha1_hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha1_hex(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(Sha1, ReadsPastANul) {
  using namespace std::string_view_literals;
  EXPECT_NE(sha1_hex("a\0b"sv), sha1_hex("a"sv));
}

}  // namespace
}  // namespace sluice
