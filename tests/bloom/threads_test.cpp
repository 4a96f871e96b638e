// Many threads on one filter.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "sluice/bloom_filter.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

constexpr int adders = 4;
const int keys_each = test::rounds(20'000);

class EachBloomKindOfThreads : public testing::TestWithParam<BloomKind> {};

INSTANTIATE_TEST_SUITE_P(Bloom, EachBloomKindOfThreads,
                         testing::Values(BloomKind::blocked, BloomKind::guava, BloomKind::guava_32,
                                         BloomKind::counting, BloomKind::scalable),
                         [](const auto& test) { return std::string{to_string(test.param)}; });

/// Each thread says how far it has come; what is said is contained, whoever asks. The filters are
/// small, so that the threads change the same words.
TEST_P(EachBloomKindOfThreads, AddAndAskAtOnce) {
  BloomFilter filter{
      {.kind = GetParam(), .expected = static_cast<std::uint64_t>(keys_each), .error_rate = 0.1}};
  std::atomic<int> added[adders]{};
  std::atomic<int> forgotten{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < adders; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < keys_each; ++i) {
          filter.add(i * adders + t);
          added[t].store(i + 1, std::memory_order_release);
          const int other = (t + 1) % adders;
          const int known = added[other].load(std::memory_order_acquire);
          if (known > 0 && !filter.contains((known - 1) * adders + other)) ++forgotten;
        }
      });
  }
  EXPECT_EQ(forgotten, 0);
  for (int i = 0; i < keys_each * adders; ++i) ASSERT_TRUE(filter.contains(i)) << i;
}

/// Of a filter that is made for one adder, and of one that was read.
TEST_P(EachBloomKindOfThreads, OneAddsWhileOthersAsk) {
  BloomFilter filter{BloomFilter{{.kind = GetParam(),
                                  .expected = static_cast<std::uint64_t>(keys_each),
                                  .error_rate = 0.1}},
                     BloomAdders::one};
  std::atomic<int> ready{0};
  std::atomic<int> added{0};
  std::atomic<int> forgotten{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        ++ready;
        for (int known = 0; known < keys_each;) {
          known = added.load(std::memory_order_acquire);
          for (int i = std::max(0, known - 5); i < known; ++i)
            if (!filter.contains(i)) ++forgotten;
        }
      });
    while (ready < 2) std::this_thread::yield();
    for (int i = 0; i < keys_each; ++i) {
      filter.add(i);
      added.store(i + 1, std::memory_order_release);
    }
  }
  EXPECT_EQ(forgotten, 0);
  for (int i = 0; i < keys_each; ++i) ASSERT_TRUE(filter.contains(i)) << i;
}

TEST_P(EachBloomKindOfThreads, CopySaveAndMergeWhileOthersAdd) {
  const test::TempDir folder;
  const auto path = (folder / "filter").string();
  BloomFilter filter{{.kind = GetParam(), .expected = 1000, .error_rate = 0.01}};
  BloomFilter all{filter.options()};
  for (int i = 0; i < 100; ++i) filter.add(-1 - i);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t](const std::stop_token& stop) {
      for (int i = 0; !stop.stop_requested(); ++i) filter.add(i % 500 * 2 + t);
    });
  for (int round = 0; round < 5; ++round) {
    const auto copy = filter;
    filter.save(path);
    const auto loaded = BloomFilter::load(path);  // its checksum is right
    all.merge(filter);
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(copy.contains(-1 - i));
      EXPECT_TRUE(loaded.contains(-1 - i));
      EXPECT_TRUE(all.contains(-1 - i));
    }
  }
}

TEST(CountingFilterThreads, WhatOneThreadRemovesNoOtherLoses) {
  BloomFilter filter{{.kind = BloomKind::counting, .expected = 1000, .error_rate = 0.01}};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < adders; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < keys_each; ++i) {
          const int key = i % 100 * adders + t;
          filter.add(key);
          EXPECT_TRUE(filter.contains(key));
          EXPECT_TRUE(filter.remove(key));
        }
      });
  }
  // Counters that were full stay: with so few keys none can be.
  EXPECT_EQ(filter.info().saturation, 0);
}

}  // namespace
}  // namespace sluice
