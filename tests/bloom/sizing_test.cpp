#include "bloom/sizing.hpp"

#include <gtest/gtest.h>

namespace sluice::bloom {
namespace {

TEST(BloomSizing, IsGuavasAndRedissons) {
  EXPECT_EQ(optimal_bits(1'000'000, 0.01), 9'585'058U);
  EXPECT_EQ(optimal_bits(1'000'000, 0.03), 7'298'440U);
  EXPECT_EQ(optimal_bits(100, 0.03), 729U);
  EXPECT_EQ(hashes_of_rate(0.01), 7U);
  EXPECT_EQ(hashes_of_rate(0.03), 5U);
  EXPECT_EQ(hashes_of_rate(0.9), 1U);
  EXPECT_EQ(hashes_of_rate(0), most_hashes);
  EXPECT_EQ(hashes_of_size(9'585'058, 1'000'000), 7U);
  EXPECT_EQ(hashes_of_size(729, 100), 5U);
}

TEST(BloomSizing, SplitBlocksKeepTheRateAndNoMore) {
  for (const double rate : {0.1, 0.03, 0.01, 0.001, 1e-5}) {
    const auto blocks = static_cast<double>(split_blocks(1'000'000, rate));
    EXPECT_LE(split_block_error(1'000'000 / blocks), rate);
    EXPECT_GT(split_block_error(1'000'000 / (blocks * 0.999)), rate);
  }
  EXPECT_EQ(split_blocks(1, 0.5), 1U);
}

TEST(BloomSizing, ASplitBlockAt1PercentTakes11BitsAKey) {  // as Parquet's specification says
  const auto bits = static_cast<double>(split_blocks(1'000'000, 0.01) * 256) / 1'000'000;
  EXPECT_GT(bits, 10.5);
  EXPECT_LT(bits, 11.5);
}

}  // namespace
}  // namespace sluice::bloom
