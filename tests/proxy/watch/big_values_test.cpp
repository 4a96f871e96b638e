#include "proxy/watch/big_values.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::proxy {
namespace {

using namespace std::chrono_literals;

constexpr WallTime start{std::chrono::seconds{1'000'000}};

TEST(BigValues, TheLargestStayAndAKeyStandsOnce) {
  BigValues values{100};
  EXPECT_TRUE(values.is_big(100));
  EXPECT_FALSE(values.is_big(99));
  for (std::uint64_t i = 0; i < 3 * BigValues::entries; ++i)
    values.note(100 + i % 50, "p", "set", "key" + std::to_string(i), start);
  values.note(1000, "p", "set", "huge", start);
  values.note(900, "p", "set", "huge", start);
  const auto all = values.values(start);
  ASSERT_EQ(all.size(), BigValues::entries);
  EXPECT_EQ(all[0].key, "huge");
  EXPECT_EQ(all[0].bytes, 900u);  // as it is now
  EXPECT_NE(all[1].key, "huge");
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i - 1].bytes, all[i].bytes);
}

TEST(BigValues, AreForgottenAfterTheirTime) {
  BigValues values{100};
  values.note(500, "p", "get", "old", start);
  EXPECT_EQ(values.values(start + BigValues::memory).size(), 1u);
  EXPECT_TRUE(values.values(start + BigValues::memory + 1s).empty());
  values.note(200, "p", "get", "new", start + BigValues::memory + 1s);
  EXPECT_EQ(values.values(start).size(), 1u);  // the old one is gone for good
}

}  // namespace
}  // namespace sluice::proxy
