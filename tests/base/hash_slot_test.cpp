#include "base/hash_slot.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(HashSlot, IsThatOfRedis) {
  EXPECT_EQ(hash_slot("123456789"), 12739);  // the check value of the specification, 0x31C3
  EXPECT_EQ(hash_slot(""), 0);
  EXPECT_EQ(hash_slot("foo"), 12182);
  EXPECT_EQ(hash_slot("a{foo}b"), 12182);
  EXPECT_EQ(hash_slot("{foo}{bar}"), 12182);
  EXPECT_NE(hash_slot("{}foo"), 12182);
  EXPECT_EQ(hash_slot("}{foo}"), 12182) << "the first '}' after the first '{'";
  EXPECT_EQ(hash_slot("{{foo}}"), hash_slot("{foo"));
}

}  // namespace
}  // namespace sluice
