#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proxy/flow/session/scan.hpp"

namespace sluice::proxy::flow {
namespace {

TEST(ScanCursor, BeginsAtTheFirstServer) {
  EXPECT_EQ(read_scan_cursor("0", 3), (ScanCursor{.place = 0, .cursor = 0}));
}

TEST(ScanCursor, GoesOnOnTheSameServer) {
  const auto next = next_scan_cursor(2, "917504", 3);
  ASSERT_TRUE(next);
  EXPECT_EQ(read_scan_cursor(*next, 3), (ScanCursor{.place = 2, .cursor = 917504}));
}

TEST(ScanCursor, ThenGoesToTheNext) {
  const auto next = next_scan_cursor(0, "0", 3);
  ASSERT_TRUE(next);
  EXPECT_NE(*next, "0");
  EXPECT_EQ(read_scan_cursor(*next, 3), (ScanCursor{.place = 1, .cursor = 0}));
}

TEST(ScanCursor, EndsWithTheLast) { EXPECT_EQ(next_scan_cursor(2, "0", 3), "0"); }

TEST(ScanCursor, OfOneServerEndsWithIt) { EXPECT_EQ(next_scan_cursor(0, "0", 1), "0"); }

TEST(ScanCursor, IsBelow2To53ForAnyTableThatFitsInMemory) {
  const auto next = next_scan_cursor(4095, std::to_string((std::uint64_t{1} << 41) - 1), 4096);
  ASSERT_TRUE(next);
  EXPECT_LT(std::stoull(*next), std::uint64_t{1} << 53);
}

TEST(ScanCursor, RefusesNonsense) {
  for (const auto* const text : {"", "x", "-1", "1x", " 1", "18446744073709551616", "3", "4095"})
    EXPECT_FALSE(read_scan_cursor(text, 3)) << text;
}

TEST(ScanCursor, RefusesWhatItCannotPassOn) {
  EXPECT_FALSE(next_scan_cursor(0, "4503599627370496", 3));  // 2^52
  EXPECT_TRUE(next_scan_cursor(0, "4503599627370495", 3));
  EXPECT_FALSE(next_scan_cursor(0, "what", 3));
}

TEST(ScanCursor, OfAClusterIsOfOneNode) {
  const std::vector<std::string> nodes{"10.0.0.1:7000", "10.0.0.2:7000", "10.0.0.3:7000"};
  const std::vector<std::string> later{"10.0.0.1:7000", "10.0.0.5:7000", "10.0.0.3:7000"};
  EXPECT_EQ(read_scan_cursor("0", nodes), ScanCursor{});
  const auto amid = next_scan_cursor(1, "917504", nodes);
  ASSERT_TRUE(amid);
  EXPECT_EQ(read_scan_cursor(*amid, nodes), (ScanCursor{.place = 1, .cursor = 917504}));
  EXPECT_FALSE(read_scan_cursor(*amid, later));
  const auto first = next_scan_cursor(0, "0", nodes);
  ASSERT_TRUE(first);
  EXPECT_EQ(read_scan_cursor(*first, nodes), (ScanCursor{.place = 1, .cursor = 0}));
  EXPECT_FALSE(read_scan_cursor(*first, later)) << "it may have another share of the keys";
  EXPECT_EQ(next_scan_cursor(2, "0", nodes), "0");
  EXPECT_FALSE(read_scan_cursor("4096", nodes));
}

}  // namespace
}  // namespace sluice::proxy::flow
