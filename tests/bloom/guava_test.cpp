// Filters of Guava: what 31.1 wrote is read and written byte for byte, and its own tests' counts of
// false positives come out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sluice/bloom_filter.hpp"
#include "sluice/error.hpp"

namespace sluice {
namespace {

std::string unhex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string{digits.substr(i, 2)}, nullptr, 16));
  return bytes;
}

/// What writeTo() of Guava 31.1 wrote, made with 30 expected keys at a rate of 0.03.
struct Written {
  BloomKind kind;
  const char* form;
  std::vector<std::string> keys;
  std::vector<std::int64_t> numbers = {};
};

std::vector<Written> written() {
  const std::vector<std::string> texts{
      "", "a", "hello", "Grüße, 世界", std::string(16, 'x'), std::string(100, 'y')};
  const std::vector<std::string> chars{
      BloomFilter::chars_funnel(u""), BloomFilter::chars_funnel(u"a"),
      BloomFilter::chars_funnel(u"hello"), BloomFilter::chars_funnel(u"Grüße, 世界")};
  const std::vector<std::string> ints{BloomFilter::int_funnel(0), BloomFilter::int_funnel(1),
                                      BloomFilter::int_funnel(-1), BloomFilter::int_funnel(42),
                                      BloomFilter::int_funnel(INT32_MIN)};
  const std::vector<std::int64_t> longs{0, 1, -1, 42, INT64_MIN};
  using enum BloomKind;
  return {
      {guava_32, "0005000000040400000020040001200000100008109080220000408022020000401201004640",
       texts},
      {guava_32, "0005000000041000000000400001200000002404200000142000000000002004021000000800",
       chars},
      {guava_32, "000500000004000132c00080000040400040000800000024000009000000200c210020200080",
       ints},
      {guava_32,
       "0005000000041200000440040000200000801000008000000092000300004021000556200000",
       {},
       longs},
      {guava, "0105000000042010200408202005080000600000200020200000208022400002200820100000",
       texts},
      {guava, "010500000004041000000000a001000000000001180020820000008080800000000000084000",
       chars},
      {guava, "0105000000044000008002020000402000200020002250002000400080214802002000008000", ints},
      {guava,
       "0105000000040000808420080000010880041041060000000000000800018100000020020802",
       {},
       longs},
  };
}

TEST(GuavaFilter, WritesWhatGuavaWrites) {
  for (const auto& [kind, form, keys, numbers] : written()) {
    BloomFilter filter{{.kind = kind, .expected = 30, .error_rate = 0.03}};
    for (const auto& key : keys) EXPECT_TRUE(filter.add(key));
    for (const auto number : numbers) EXPECT_TRUE(filter.add(number));
    EXPECT_EQ(filter.to_guava(), unhex(form));
  }
}

TEST(GuavaFilter, ReadsWhatGuavaWrote) {
  for (const auto& [kind, form, keys, numbers] : written()) {
    auto filter = BloomFilter::from_guava(unhex(form));
    EXPECT_EQ(filter.options().kind, kind);
    for (const auto& key : keys) EXPECT_TRUE(filter.contains(key));
    for (const auto number : numbers) EXPECT_TRUE(filter.contains(number));
    EXPECT_FALSE(filter.contains("not added"));
    EXPECT_EQ(filter.to_guava(), unhex(form));
    EXPECT_EQ(filter.info().hashes, 5U);
    EXPECT_EQ(filter.info().bits, 256U);
    const BloomFilter ours{{.kind = kind, .expected = 30, .error_rate = 0.03}};
    filter.merge(ours);  // the same shape
  }
}

TEST(GuavaFilter, EstimatesAsGuava) {  // approximateElementCount(), expectedFpp()
  const auto info = BloomFilter::from_guava(unhex(written()[0].form)).info();
  EXPECT_EQ(info.keys, 5U);
  EXPECT_DOUBLE_EQ(std::pow(info.saturation, info.hashes), 1.0806048521772027E-5);
}

/// How many of `asked` are contained, though only `added` were added.
template <class Key>
int false_positives(BloomFilter& filter, const Key& added, const Key& asked, int count) {
  for (int i = 0; i < count; ++i) filter.add(added(i));
  for (int i = 0; i < count; ++i)
    if (!filter.contains(added(i))) ADD_FAILURE() << "forgot number " << i;
  int found = 0;
  for (int i = 0; i < count; ++i) found += filter.contains(asked(i)) ? 1 : 0;
  return found;
}

int false_positives_of_integers(double error_rate, std::uint64_t bits) {
  BloomFilter filter{{.kind = BloomKind::guava, .expected = 1'000'000, .error_rate = error_rate}};
  EXPECT_EQ(filter.info().bits, (bits + 63) / 64 * 64);
  for (int i = 0; i < 1'000'000; ++i) filter.add(BloomFilter::int_funnel(i));
  int found = 0;
  for (int i = 1'000'000; i < 1'100'000; ++i)
    found += filter.contains(BloomFilter::int_funnel(i)) ? 1 : 0;
  return found;
}

TEST(GuavaFilter, Has947FalsePositivesAmong100000IntegersAt1Percent) {
  EXPECT_EQ(false_positives_of_integers(0.01, 9'585'058), 947);
}

TEST(GuavaFilter, Has3033FalsePositivesAmong100000IntegersAt3Percent) {
  EXPECT_EQ(false_positives_of_integers(0.03, 7'298'440), 3033);
}

/// Guava's own tests (BloomFilterTest): even numbers as text are added, odd ones asked for.
int false_positives_of_texts(BloomKind kind, bool as_chars) {
  BloomFilter filter{{.kind = kind, .expected = 1'000'000, .error_rate = 0.03}};
  const auto text = [as_chars](int number) {
    auto bytes = std::to_string(number);
    if (!as_chars) return bytes;
    return BloomFilter::chars_funnel(std::u16string{bytes.begin(), bytes.end()});
  };
  const std::function<std::string(int)> even = [&](int i) { return text(2 * i); };
  const std::function<std::string(int)> odd = [&](int i) { return text(2 * i + 1); };
  return false_positives(filter, even, odd, 1'000'000);
}

TEST(GuavaFilter, Has30104FalsePositivesOfGuavasTestOfChars) {
  EXPECT_EQ(false_positives_of_texts(BloomKind::guava, true), 30104);
}

TEST(GuavaFilter, Has29763FalsePositivesOfGuavasTestOfUtf8) {
  EXPECT_EQ(false_positives_of_texts(BloomKind::guava, false), 29763);
}

TEST(GuavaFilter, Has29824FalsePositivesOfGuavasTestOfTheOldStrategy) {
  EXPECT_EQ(false_positives_of_texts(BloomKind::guava_32, true), 29824);
}

std::string refusal_of(const std::string& form) {
  try {
    static_cast<void>(BloomFilter::from_guava(form));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::corrupt);
    return error.message();
  }
}

TEST(GuavaFilter, RefusesWhatGuavaDidNotWrite) {
  const auto form = unhex(written()[4].form);
  for (std::size_t bytes = 0; bytes < form.size(); ++bytes)
    EXPECT_NE(refusal_of(form.substr(0, bytes)), "") << bytes;
  EXPECT_NE(refusal_of(form + '\0'), "");

  auto lie = form;
  lie[0] = 2;
  EXPECT_TRUE(refusal_of(lie).contains("strategy 2")) << refusal_of(lie);
  lie = form;
  lie[1] = 0;  // hashes
  EXPECT_NE(refusal_of(lie), "");
  lie = form;
  lie[2] = '\x80';  // a negative number of words
  EXPECT_NE(refusal_of(lie), "");
  EXPECT_NE(refusal_of(unhex("010500000000")), "");  // no words: Guava divides by nothing
}

TEST(GuavaFilter, OfAnotherKindHasNoForm) {
  EXPECT_THROW(static_cast<void>(BloomFilter{}.to_guava()), Error);
}

/// As BloomFilter.java of 33.3.1 and of 33.4.0 reckons.
unsigned hashes_of_guava(GuavaVersion version, std::uint64_t keys, double rate) {
  const double by_size =
      static_cast<double>(static_cast<std::uint64_t>(-static_cast<double>(keys) * std::log(rate) /
                                                     std::pow(std::log(2.0), 2))) /
      static_cast<double>(keys) * std::log(2.0);
  const double wanted =
      version == GuavaVersion::since_33_4 ? -std::log(rate) / std::log(2.0) : by_size;
  return static_cast<unsigned>(std::max(1.0, std::floor(wanted + 0.5)));
}

TEST(GuavaFilter, BC09_HasTheHashesOfEitherVersion) {
  int different = 0;
  for (std::uint64_t keys = 1; keys <= 300; ++keys)
    for (const double rate : {0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.001, 1e-4}) {
      unsigned hashes[2];
      for (const auto version : {GuavaVersion::since_33_4, GuavaVersion::before_33_4}) {
        const BloomFilter filter{
            {.kind = BloomKind::guava, .expected = keys, .error_rate = rate, .guava = version}};
        hashes[static_cast<int>(version)] = filter.info().hashes;
        EXPECT_EQ(filter.info().hashes, hashes_of_guava(version, keys, rate))
            << keys << " " << rate;
      }
      different += hashes[0] != hashes[1];
    }
  EXPECT_GT(different, 0);
}

}  // namespace
}  // namespace sluice
