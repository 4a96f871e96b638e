#include "base/sha256.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

TEST(Sha256, KnowsTheExamplesOfFips180) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// RFC 4231, test cases 2 and 6: a short key, and one that is longer than a block.
TEST(Sha256, KnowsTheExamplesOfRfc4231) {
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'),
                            "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Sha256, ComparesWhole) {
  EXPECT_TRUE(equal_in_constant_time("signature", "signature"));
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_FALSE(equal_in_constant_time("signature", "signaturf"));
  EXPECT_FALSE(equal_in_constant_time("signature", "signatur"));
  EXPECT_FALSE(equal_in_constant_time(std::string{"a\0b", 3}, std::string{"a\0c", 3}));
}

}  // namespace
}  // namespace sluice
