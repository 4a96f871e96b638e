#include "base/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "support/matchers.hpp"

namespace sluice {
namespace {

TEST(Random, AUuidIsOfVersion4AndVariant1) {
  const auto has_the_form =
      testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto uuid = random_uuid();
    EXPECT_THAT(uuid, has_the_form);
    EXPECT_TRUE(seen.insert(uuid).second) << uuid << " twice";
  }
}

TEST(Random, Hex128IsHexAndNeverTheSame) {
  const auto has_the_form = testing::MatchesRegex("[0-9a-f]{32}");
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto hex = random_hex_128();
    EXPECT_THAT(hex, has_the_form);
    EXPECT_TRUE(seen.insert(hex).second) << hex << " twice";
  }
}

TEST(Random, BelowStaysBelowAndReachesEveryValue) {
  std::array<int, 10> hits{};
  for (int i = 0; i < 10'000; ++i) {
    const auto drawn = random_below(hits.size());
    ASSERT_LT(drawn, hits.size());
    ++hits[drawn];
  }
  for (const int count : hits)
    EXPECT_GT(count, 700);  // 1000 expected; ten standard deviations below
  EXPECT_EQ(random_below(1), 0U);
}

}  // namespace
}  // namespace sluice
