// Split blocks: the bits are Parquet's, and AVX2 does what plain code does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "bloom/blocked_filter.hpp"
#include "bloom/lanes.hpp"
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

std::unique_ptr<Filter> filter_of(std::uint64_t blocks, Lanes lanes,
                                  BloomAdders adders = BloomAdders::many) {
  const Shape shape{.bits = blocks * 256, .hashes = 8, .capacity = 1};
  std::vector<Part> parts;
  parts.push_back({shape, Memory{shape.bits / 8}});
  return make_blocked({.adders = adders}, std::move(parts), lanes);
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

struct LanesAndAdders {
  Lanes lanes;
  BloomAdders adders;
};

class EachBlockedFilter : public testing::TestWithParam<LanesAndAdders> {
 protected:
  void SetUp() override {
    if (GetParam().lanes == Lanes::avx2 && !has_avx2())
      GTEST_SKIP() << "this processor has no AVX2";
  }

  std::unique_ptr<Filter> filter(std::uint64_t blocks) const {
    return filter_of(blocks, GetParam().lanes, GetParam().adders);
  }
};

INSTANTIATE_TEST_SUITE_P(Bloom, EachBlockedFilter,
                         testing::Values(LanesAndAdders{Lanes::scalar, BloomAdders::many},
                                         LanesAndAdders{Lanes::scalar, BloomAdders::one},
                                         LanesAndAdders{Lanes::avx2, BloomAdders::many},
                                         LanesAndAdders{Lanes::avx2, BloomAdders::one}),
                         [](const auto& test) {
                           const LanesAndAdders& made = test.param;
                           return std::string{made.lanes == Lanes::avx2 ? "Avx2" : "Plain"} +
                                  (made.adders == BloomAdders::one ? "OneAdder" : "ManyAdders");
                         });

/// A model of the specification, bit by bit.
class Model {
 public:
  explicit Model(std::uint64_t blocks) : blocks_(blocks), bits_(blocks * 256) {}

  bool add(std::uint64_t key) {
    bool is_new = false;
    for (const auto bit : bits_of(key)) {
      is_new |= !bits_[bit];
      bits_[bit] = true;
    }
    return is_new;
  }
  bool contains(std::uint64_t key) const {
    return std::ranges::all_of(bits_of(key), [this](std::uint64_t bit) { return bits_[bit]; });
  }
  std::string form() const {
    std::string bytes(bits_.size() / 8, '\0');
    for (std::size_t bit = 0; bit < bits_.size(); ++bit)
      if (bits_[bit]) bytes[bit / 8] = static_cast<char>(bytes[bit / 8] | 1 << bit % 8);
    return bytes;
  }

 private:
  std::vector<std::uint64_t> bits_of(std::uint64_t key) const {
    const auto hash = xxh64(key);
    const auto block = (hash >> 32) * blocks_ >> 32;
    std::vector<std::uint64_t> bits;
    for (std::size_t word = 0; word < salts.size(); ++word)
      bits.push_back(block * 256 + word * 32 +
                     (static_cast<std::uint32_t>(hash) * salts[word] >> 27));
    return bits;
  }

  std::uint64_t blocks_;
  std::vector<bool> bits_;
};

TEST_P(EachBlockedFilter, DoesWhatTheModelDoes) {
  std::mt19937_64 random{7};
  for (int round = 0; round < test::rounds(50); ++round) {
    const auto blocks = random() % (round % 2 == 0 ? 10 : 300) + 1;
    Model model{blocks};
    const auto some = filter(blocks);
    std::vector<std::uint64_t> keys(random() % (blocks * 40) + 1);
    for (auto& key : keys) key = random() % (blocks * 60);  // some again
    std::vector<bool> expected;
    const auto half = std::span{keys}.first(keys.size() / 2);
    for (const auto key : half) ASSERT_EQ(some->add_number(key), model.add(key));
    const auto rest = std::span{keys}.subspan(half.size());
    for (const auto key : rest) expected.push_back(model.add(key));
    ASSERT_EQ(some->add_numbers(rest), expected);
    ASSERT_EQ(parquet_form(*some), model.form());
    expected.clear();
    for (auto& key : keys) key = random() % (blocks * 120);
    for (const auto key : keys) expected.push_back(model.contains(key));
    ASSERT_EQ(some->contains_numbers(keys), expected);
    for (const auto key : half) ASSERT_EQ(some->contains_number(key), model.contains(key));
  }
}

TEST_P(EachBlockedFilter, ABulkOfAnySizeIsAnsweredKeyByKey) {
  for (std::uint64_t size = 0; size <= 200; ++size) {
    const auto some = filter(20);
    const auto one_by_one = filter(20);
    std::vector<std::string> texts;
    std::vector<bool> is_new;
    for (std::uint64_t i = 0; i < size; ++i) texts.push_back(std::to_string(i * 7 % 90));
    const std::vector<std::string_view> keys{texts.begin(), texts.end()};
    for (const auto key : keys) is_new.push_back(one_by_one->add(key));
    ASSERT_EQ(some->add_keys(keys), is_new) << size;
    ASSERT_EQ(parquet_form(*some), parquet_form(*one_by_one)) << size;
    ASSERT_EQ(some->contains_keys(keys), std::vector<bool>(size, true));
  }
}

/// Two threads go through the same blocks, and each adds a key of its own to each: where they meet,
/// a block changes between the look and the change of one of them.
template <class Lane>
void expect_both_kept() {
  constexpr std::uint64_t count = test::rounds(500'000);
  Memory memory{count * block_bits / 8};
  const auto block = [&memory](std::uint64_t i) {
    return Blocks{memory.words().data() + i * words_a_block, 1};
  };
  const auto hash = [](std::uint64_t i, std::uint64_t thread) { return xxh64(2 * i + thread); };
  {
    std::atomic<int> ready{0};
    std::vector<std::jthread> threads;
    for (std::uint64_t thread = 0; thread < 2; ++thread)
      threads.emplace_back([&, thread] {
        ++ready;
        while (ready < 2) std::this_thread::yield();
        for (std::uint64_t i = 0; i < count; ++i)
          Lane::add(block(i), hash(i, thread), BloomAdders::many);
      });
  }
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    for (std::uint64_t thread = 0; thread < 2; ++thread)
      lost += Lane::contains(block(i), hash(i, thread)) ? 0 : 1;
  EXPECT_EQ(lost, 0U);
}

TEST(BlockedFilter, WhatThreadsAddToOneBlockAtOnceIsKept) {
  expect_both_kept<ScalarLane>();
  if (has_avx2()) expect_both_kept<Avx2Lane>();
}

/// Plain code, too, which ThreadSanitizer sees into.
TEST_P(EachBlockedFilter, OneAddsWhileOthersAsk) {
  const int keys = test::rounds(20'000);
  const auto some = filter(static_cast<std::uint64_t>(keys) / 20);
  std::atomic<int> ready{0};
  std::atomic<int> added{0};
  std::atomic<int> forgotten{0};
  {
    std::vector<std::jthread> threads;
    for (int asker = 0; asker < 2; ++asker)
      threads.emplace_back([&] {
        ++ready;
        for (int known = 0; known < keys;) {
          known = added.load(std::memory_order_acquire);
          std::vector<std::uint64_t> last;
          for (int i = std::max(0, known - 10); i < known; ++i)
            last.push_back(static_cast<std::uint64_t>(i));
          for (const bool is_in : some->contains_numbers(last)) forgotten += is_in ? 0 : 1;
          for (const auto key : last) forgotten += some->contains_number(key) ? 0 : 1;
        }
      });
    while (ready < 2) std::this_thread::yield();
    for (int i = 0; i < keys; i += 2) {
      const std::uint64_t next = static_cast<std::uint64_t>(i) + 1;
      some->add_number(static_cast<std::uint64_t>(i));
      some->add_numbers(Numbers{&next, 1});
      added.store(i + 2, std::memory_order_release);
    }
  }
  EXPECT_EQ(forgotten, 0);
  for (int i = 0; i < keys; ++i)
    ASSERT_TRUE(some->contains_number(static_cast<std::uint64_t>(i))) << i;
}

}  // namespace
}  // namespace sluice::bloom
