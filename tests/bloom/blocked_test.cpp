// Split blocks: the bits are Parquet's, and AVX2 does what plain code does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "bloom/blocked_filter.hpp"
#include "bloom/xxhash.hpp"
#include "sluice/error.hpp"
#include "support/sanitized.hpp"

namespace sluice::bloom {
namespace {

std::string bytes(std::initializer_list<int> numbers) {
  std::string all;
  for (const int number : numbers) all += static_cast<char>(number);
  return all;
}

std::unique_ptr<Filter> filter_of(std::uint64_t blocks, Lanes lanes) {
  const Shape shape{.bits = blocks * 256, .hashes = 8, .capacity = 1};
  std::vector<Part> parts;
  parts.push_back({shape, Memory{shape.bits / 8}});
  return make_blocked({}, std::move(parts), lanes);
}

std::vector<Lanes> all_lanes() {
  return has_avx2() ? std::vector{Lanes::scalar, Lanes::avx2} : std::vector{Lanes::scalar};
}

/// The bitsets that Spark 3.2 wrote for columns of INT64 0 to 9, and of strings a0 to a9.
TEST(BlockedFilter, HasTheBitsOfParquet) {
  const auto numbers =
      bytes({24,  130, 24, 8,  134, 8,   68,  6,   2,  101, 128, 10, 64, 2,   38, 78,
             114, 1,   64, 38, 1,   192, 194, 152, 64, 70,  0,   36, 56, 121, 64, 0});
  const auto texts = bytes({200, 1,   80, 20, 64, 68, 8,  109, 6, 37, 4,   67, 144, 80, 96, 32,
                            8,   132, 43, 33, 0,  5,  99, 65,  2, 0,  224, 44, 64,  78, 96, 4});
  for (const auto lanes : all_lanes()) {
    const auto first = filter_of(1, lanes);
    const auto second = filter_of(1, lanes);
    for (std::uint64_t i = 0; i < 10; ++i) {
      first->add_number(i);
      second->add("a" + std::to_string(i));
    }
    EXPECT_EQ(parquet_form(*first), numbers);
    EXPECT_EQ(parquet_form(*second), texts);
  }
  auto read = BloomFilter::from_parquet(numbers);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(read.contains(i));
  EXPECT_EQ(read.to_parquet(), numbers);
}

TEST(BlockedFilter, TakesTheBlockOfTheUpperHalfOfTheHash) {
  ASSERT_EQ(xxh64(std::string_view{}), 0xef46db3751d8e999U);  // as xxHash's specification says
  for (const auto lanes : all_lanes()) {
    const auto filter = filter_of(1000, lanes);
    filter->add("");
    const auto block = 0xef46db37ULL * 1000 >> 32;
    const auto form = parquet_form(*filter);
    const auto outside = form.substr(0, block * 32) + form.substr(block * 32 + 32);
    EXPECT_EQ(outside, std::string(999 * 32, '\0'));
    EXPECT_EQ(count_bits(filter->parts().front().words), 8U);
  }
}

TEST(BlockedFilter, RefusesABitsetOfNoWholeBlocks) {
  for (const std::size_t size : {0, 1, 31, 33, 63})
    EXPECT_THROW(static_cast<void>(BloomFilter::from_parquet(std::string(size, '\0'))), Error);
  EXPECT_THROW(static_cast<void>(BloomFilter{{.kind = BloomKind::guava}}.to_parquet()), Error);
}

RC_GTEST_PROP(BlockedFilter, HashesANumberAsItsBytes, (std::uint64_t number)) {
  RC_ASSERT(xxh64(number) == XXH64(&number, sizeof number, 0));
}

TEST(BlockedFilter, Avx2DoesWhatPlainCodeDoes) {
  if (!has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  std::mt19937_64 random{7};
  for (int round = 0; round < test::rounds(50); ++round) {
    const auto blocks = random() % (round % 2 == 0 ? 10 : 1000) + 1;
    const auto plain = filter_of(blocks, Lanes::scalar);
    const auto avx2 = filter_of(blocks, Lanes::avx2);
    std::vector<std::uint64_t> keys(random() % (blocks * 40) + 1);
    for (auto& key : keys) key = random() % (blocks * 60);  // some again
    const auto half = std::span{keys}.first(keys.size() / 2);
    for (const auto key : half) ASSERT_EQ(plain->add_number(key), avx2->add_number(key));
    const auto rest = std::span{keys}.subspan(half.size());
    ASSERT_EQ(plain->add_numbers(rest), avx2->add_numbers(rest));
    ASSERT_EQ(parquet_form(*plain), parquet_form(*avx2));
    for (auto& key : keys) key = random() % (blocks * 120);
    ASSERT_EQ(plain->contains_numbers(keys), avx2->contains_numbers(keys));
    for (const auto key : half) ASSERT_EQ(plain->contains_number(key), avx2->contains_number(key));
  }
}

}  // namespace
}  // namespace sluice::bloom
