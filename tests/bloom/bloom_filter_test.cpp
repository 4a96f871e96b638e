// What every kind of Bloom filter promises, and what each has of its own.
#include "sluice/bloom_filter.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "sluice/error.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

class EachBloomKind : public testing::TestWithParam<BloomKind> {
 protected:
  BloomFilter filter(std::uint64_t expected = 1000, double error_rate = 0.01) const {
    return BloomFilter{{.kind = GetParam(), .expected = expected, .error_rate = error_rate}};
  }
};

INSTANTIATE_TEST_SUITE_P(Bloom, EachBloomKind,
                         testing::Values(BloomKind::blocked, BloomKind::guava, BloomKind::guava_32,
                                         BloomKind::counting, BloomKind::scalable),
                         [](const auto& test) { return std::string{to_string(test.param)}; });

TEST_P(EachBloomKind, ForgetsNoKey) {
  EXPECT_TRUE(rc::check([this] {
    auto some = filter(*rc::gen::inRange(1, 300), *rc::gen::element(0.5, 0.1, 0.001, 1e-9));
    const auto keys = *rc::gen::arbitrary<std::vector<std::string>>();
    const auto numbers = *rc::gen::arbitrary<std::vector<std::int64_t>>();
    for (const auto& key : keys) some.add(key);
    for (const auto number : numbers) some.add(number);
    for (const auto& key : keys) RC_ASSERT(some.contains(key));
    for (const auto number : numbers) RC_ASSERT(some.contains(number));
  }));
}

TEST_P(EachBloomKind, KeepsTheErrorRateWithin3Sigma) {
  for (const double rate : {0.1, 0.01, 0.001}) {
    constexpr int expected = 50'000;
    auto full = filter(expected, rate);
    for (int i = 0; i < expected; ++i) full.add(i);
    const auto info = full.info();
    EXPECT_LE(info.error_rate, rate * 1.02) << rate;
    EXPECT_NEAR(static_cast<double>(info.keys), expected, expected * 0.01);

    const int asked = test::rounds(1'000'000);
    int found = 0;
    for (int i = 0; i < asked; ++i) found += full.contains(-1 - i) ? 1 : 0;
    const double sigma = std::sqrt(info.error_rate * (1 - info.error_rate) / asked);
    EXPECT_NEAR(static_cast<double>(found) / asked, info.error_rate, 3 * sigma) << rate;
  }
}

TEST_P(EachBloomKind, SaysWhetherAKeyIsNew) {
  auto some = filter();
  EXPECT_FALSE(some.contains("a"));
  EXPECT_TRUE(some.add("a"));
  EXPECT_FALSE(some.add("a"));
  EXPECT_TRUE(some.contains("a"));
  EXPECT_FALSE(some.contains("b"));
}

TEST_P(EachBloomKind, TakesAKeyOfNoBytesAndOneOf10MB) {
  auto some = filter();
  const std::string large(10'000'000, 'x');
  EXPECT_TRUE(some.add(""));
  EXPECT_TRUE(some.add(large));
  EXPECT_FALSE(some.add(std::string_view{}));
  EXPECT_TRUE(some.contains(""));
  EXPECT_TRUE(some.contains(large));
  EXPECT_FALSE(some.contains(large.substr(1)));
  EXPECT_FALSE(some.contains(std::string(1, '\0')));
}

TEST_P(EachBloomKind, ANumberIsItsEightBytes) {
  auto some = filter();
  some.add(0x6867666564636261);
  EXPECT_TRUE(some.contains("abcdefgh"));
  some.add(-1);  // of any integer type
  EXPECT_TRUE(some.contains(std::int64_t{-1}));
  EXPECT_TRUE(some.contains(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_TRUE(some.contains(std::string(8, '\xff')));
  EXPECT_FALSE(some.contains(std::uint32_t{0xffff'ffff}));
}

TEST_P(EachBloomKind, ManyAtOnceAreAsOneByOne) {
  auto one = filter(200);
  auto many = filter(200);
  std::vector<std::string> texts;
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < 333; ++i) {
    texts.push_back(std::to_string(i % 150));
    numbers.push_back(i % 150);
  }
  const std::vector<std::string_view> keys{texts.begin(), texts.end()};
  std::vector<bool> texts_new;
  std::vector<bool> numbers_new;
  for (const auto key : keys) texts_new.push_back(one.add(key));
  for (const auto number : numbers) numbers_new.push_back(one.add(number));
  EXPECT_EQ(many.add(keys), texts_new);
  EXPECT_EQ(many.add(numbers), numbers_new);
  EXPECT_EQ(many.contains(keys), std::vector<bool>(keys.size(), true));
  EXPECT_EQ(many.contains(numbers), std::vector<bool>(numbers.size(), true));
  EXPECT_EQ(many.contains(std::vector<std::string_view>{"0", "no", "149"}),
            (std::vector{true, false, true}));
  EXPECT_EQ(many.contains(std::vector<std::uint64_t>{}), std::vector<bool>{});
  EXPECT_EQ(many.info().saturation, one.info().saturation);
}

TEST_P(EachBloomKind, ACopyIsOfItsOwn) {
  auto first = filter();
  first.add("both");
  auto second = first;
  second.add("second");
  first.add("first");
  EXPECT_TRUE(second.contains("both"));
  EXPECT_FALSE(first.contains("second"));
  EXPECT_FALSE(second.contains("first"));
  first = second;
  EXPECT_TRUE(first.contains("second"));
  EXPECT_FALSE(first.contains("first"));
  const auto third = std::move(first);
  EXPECT_TRUE(third.contains("both"));
}

TEST_P(EachBloomKind, AUnionContainsWhatEitherDoes) {
  auto even = filter(2000);
  auto odd = filter(2000);
  auto all = filter(2000);
  for (int i = 0; i < 2000; ++i) {
    (i % 2 == 0 ? even : odd).add(i);
    all.add(i);
  }
  even.merge(odd);
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(even.contains(i));
  if (GetParam() == BloomKind::scalable) {
    EXPECT_EQ(even.info().filters, 2U);
    EXPECT_LE(even.info().error_rate, 0.02);
  } else {
    EXPECT_EQ(even.info().saturation, all.info().saturation);
  }
  even.merge(even);
  EXPECT_TRUE(even.contains(1));
}

TEST_P(EachBloomKind, AUnionOfOtherShapesIsRefused) {
  auto some = filter();
  some.add("kept");
  const auto other = GetParam() == BloomKind::blocked ? BloomKind::guava : BloomKind::blocked;
  EXPECT_THROW(some.merge(BloomFilter{{.kind = other, .expected = 1000}}), Error);
  if (GetParam() != BloomKind::scalable) {
    EXPECT_THROW(some.merge(filter(5000)), Error);
  }
  EXPECT_TRUE(some.contains("kept"));
  EXPECT_FALSE(some.contains("other"));
}

TEST_P(EachBloomKind, ANewOneIsEmpty) {
  const auto info = filter(0).info();  // counts as 1
  EXPECT_EQ(info.kind, GetParam());
  EXPECT_EQ(info.keys, 0U);
  EXPECT_EQ(info.saturation, 0);
  EXPECT_EQ(info.error_rate, 0);
  EXPECT_GT(info.bits, 0U);
  EXPECT_GE(info.bytes, 64U);
}

TEST_P(EachBloomKind, SaysHowFullItIsWhenItIsFull) {
  auto small = filter(1, 0.5);
  for (int i = 0; i < 100'000; ++i) small.add(i);
  const auto info = small.info();
  if (GetParam() == BloomKind::scalable) {
    EXPECT_LE(info.error_rate, 0.5);
    EXPECT_NEAR(static_cast<double>(info.keys), 100'000, 20'000);
  } else {
    EXPECT_EQ(info.saturation, 1);
    EXPECT_EQ(info.error_rate, 1);
    EXPECT_TRUE(small.contains("anything"));
  }
}

std::string refusal_of(const BloomFilterOptions& options) {
  try {
    const BloomFilter filter{options};
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument);
    return error.message();
  }
}

TEST_P(EachBloomKind, RefusesImpossibleOptions) {
  for (const double rate : {0.0, 1.0, -0.1, 2.0, std::nan(""), 1.0 / 0.0})
    EXPECT_TRUE(refusal_of({.kind = GetParam(), .error_rate = rate}).contains("between 0 and 1"));
  const auto most = std::numeric_limits<std::uint64_t>::max();
  for (const double rate : {0.5, 1e-300, 5e-324})
    EXPECT_NE(refusal_of({.kind = GetParam(), .expected = most, .error_rate = rate}), "");
  EXPECT_TRUE(refusal_of({.kind = GetParam(), .expected = 1000, .max_bytes = 100})
                  .contains("max_bytes (100)"));
}

TEST_P(EachBloomKind, OnlyACountingOneCanRemove) {
  auto some = filter();
  some.add("a");
  if (GetParam() == BloomKind::counting)
    EXPECT_TRUE(some.remove("a"));
  else
    EXPECT_THROW(some.remove("a"), Error);
}

TEST(CountingFilter, ForgetsWhatIsRemovedAndNothingElse) {
  EXPECT_TRUE(rc::check([] {
    BloomFilter filter{{.kind = BloomKind::counting, .expected = 50, .error_rate = 0.2}};
    std::multiset<int> model;
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-20, 20));
    for (const int step : steps) {
      const int key = std::abs(step);
      if (step >= 0) {
        filter.add(key);
        model.insert(key);
      } else if (const auto found = model.find(key); found != model.end()) {
        RC_ASSERT(filter.remove(key));
        model.erase(found);
      }
      for (const int each : model) RC_ASSERT(filter.contains(each));
    }
    if (model.empty()) RC_ASSERT(filter.info().saturation == 0 || steps.size() > 14);
  }));
}

TEST(CountingFilter, IsEmptyWhenAllIsRemoved) {
  BloomFilter filter{{.kind = BloomKind::counting, .expected = 10'000}};
  for (int i = 0; i < 10'000; ++i) filter.add(i);
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(filter.remove(i));
  EXPECT_EQ(filter.info().saturation, 0);
  EXPECT_FALSE(filter.remove(1));
  EXPECT_FALSE(filter.remove("never there"));
}

TEST(CountingFilter, ACounterThatIsFullStaysFull) {
  BloomFilter filter{{.kind = BloomKind::counting, .expected = 100}};
  for (int i = 0; i < 1000; ++i) filter.add("often");
  filter.merge(BloomFilter{filter});  // no counter runs over
  for (int i = 0; i < 3000; ++i) filter.remove("often");
  EXPECT_TRUE(filter.contains("often"));
  EXPECT_FALSE(filter.contains("else"));
}

TEST(ScalableFilter, KeepsItsRateAThousandTimesBeyondTheExpected) {
  BloomFilter filter{{.kind = BloomKind::scalable, .expected = 100, .error_rate = 0.01}};
  const int keys = test::rounds(100'000);
  for (int i = 0; i < keys; ++i) filter.add(i);
  for (int i = 0; i < keys; ++i) ASSERT_TRUE(filter.contains(i));
  const auto info = filter.info();
  EXPECT_GT(info.filters, 5U);
  EXPECT_LE(info.error_rate, 0.01);
  EXPECT_NEAR(static_cast<double>(info.keys), keys, keys * 0.05);
  int found = 0;
  for (int i = 1; i <= 100'000; ++i) found += filter.contains(-i) ? 1 : 0;
  EXPECT_LE(found, 1000);
}

TEST(ScalableFilter, StopsGrowingAtItsLimitAndForgetsNothing) {
  BloomFilter filter{{.kind = BloomKind::scalable, .expected = 100, .max_bytes = 4096}};
  for (int i = 0; i < 20'000; ++i) filter.add(i);
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(filter.contains(i));
  EXPECT_LE(filter.info().bytes, 4096U);
  EXPECT_GT(filter.info().error_rate, 0.01);
}

TEST(ScalableFilter, DoesNotGrowBeforeAKeyBeyondTheExpectedComes) {
  BloomFilter filter{{.kind = BloomKind::scalable, .expected = 100, .error_rate = 1e-9}};
  for (int i = 0; i < 100; ++i) filter.add(i);
  EXPECT_EQ(filter.info().filters, 1U);
  filter.add(100);
  EXPECT_EQ(filter.info().filters, 2U);
}

TEST(ScalableFilter, AKeyThatComesAgainDoesNotMakeItGrow) {
  BloomFilter filter{{.kind = BloomKind::scalable, .expected = 100}};
  for (int i = 0; i < 10'000; ++i) filter.add(i % 90);
  EXPECT_EQ(filter.info().filters, 1U);
}

TEST(ScalableFilter, AChainHasAnEnd) {
  BloomFilter filter{{.kind = BloomKind::scalable, .expected = 1}};
  for (int i = 0; i < 6; ++i) filter.merge(filter);  // 64 links
  EXPECT_EQ(filter.info().filters, 64U);
  EXPECT_THROW(filter.merge(filter), Error);
  for (int i = 0; i < 1000; ++i) filter.add(i);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(filter.contains(i));
  EXPECT_EQ(filter.info().filters, 64U);
}

}  // namespace
}  // namespace sluice
