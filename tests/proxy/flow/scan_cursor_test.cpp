#include <gtest/gtest.h>

#include <string>

#include "proxy/flow/session/scan.hpp"

namespace sluice::proxy::flow {
namespace {

const ScanList three{3, "a b c"};

TEST(ScanCursor, BeginsAtTheFirstServer) { EXPECT_EQ(three.read("0"), ScanCursor{}); }

TEST(ScanCursor, GoesOnOnTheSameServer) {
  const auto next = three.next(2, "917504");
  ASSERT_TRUE(next);
  EXPECT_EQ(three.read(*next), (ScanCursor{.place = 2, .cursor = 917504}));
}

TEST(ScanCursor, ThenGoesToTheNext) {
  const auto next = three.next(0, "0");
  ASSERT_TRUE(next);
  EXPECT_NE(*next, "0");
  EXPECT_EQ(three.read(*next), (ScanCursor{.place = 1, .cursor = 0}));
}

TEST(ScanCursor, EndsWithTheLast) { EXPECT_EQ(three.next(2, "0"), "0"); }

TEST(ScanCursor, OfOneServerEndsWithIt) {
  const ScanList one{1, "a"};
  EXPECT_EQ(one.next(0, "0"), "0");
  EXPECT_EQ(one.read(one.next(0, "7").value()), (ScanCursor{.place = 0, .cursor = 7}));
}

TEST(ScanCursor, IsBelow2To53ForAnyTableThatFitsInMemory) {
  for (const std::size_t servers : {1, 2, 3, 4, 5, 4096}) {
    const ScanList list{servers, "what"};
    const auto most = std::to_string((std::uint64_t{1} << 33) - 1);
    const auto next = list.next(servers - 1, most);
    ASSERT_TRUE(next);
    EXPECT_LT(std::stoull(*next), std::uint64_t{1} << 53);
    EXPECT_EQ(list.read(*next), (ScanCursor{servers - 1, (std::uint64_t{1} << 33) - 1}));
  }
}

TEST(ScanCursor, RefusesNonsense) {
  for (const auto* const text : {"", "x", "-1", "1x", " 1", "18446744073709551616", "3", "4095"})
    EXPECT_FALSE(three.read(text)) << text;
}

TEST(ScanCursor, RefusesWhatItCannotPassOn) {
  EXPECT_FALSE(three.next(0, "17592186044416"));  // 2^44
  EXPECT_TRUE(three.next(0, "17592186044415"));
  EXPECT_FALSE(three.next(0, "what"));
}

/// The end of one server is the beginning of the next, which another list has not there.
TEST(ScanCursor, PX_IsOfOneListOfServers) {
  const auto amid = three.next(1, "917504"), begin = three.next(0, "0");
  for (const auto& other : {ScanList{3, "a x c"}, ScanList{3, "b a c"}, ScanList{2, "b c"},
                            ScanList{4, "a b c d"}, ScanList{1, "b"}, ScanList{3, "a b c 1"}}) {
    EXPECT_FALSE(other.read(*amid));
    EXPECT_FALSE(other.read(*begin));
    EXPECT_EQ(other.read("0"), ScanCursor{});
  }
}

}  // namespace
}  // namespace sluice::proxy::flow
