/// What a shared filter does without a Store: hashes, indexes, codecs, definitions, bits. The
/// vectors are Redisson 4.7's.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "bloom/shared/filter_bits.hpp"

namespace sluice::bloom {
namespace {

using namespace std::string_literals;

std::vector<std::uint64_t> indexes(const KeyHash& hash, std::uint64_t bits, unsigned hashes) {
  std::vector<std::uint64_t> all;
  each_index(hash, Modulus{bits}, hashes, [&all](std::uint64_t index) {
    all.push_back(index);
    return true;
  });
  return all;
}

struct Vector {
  std::string bytes;
  KeyHash hash;
  std::vector<std::uint64_t> indexes;  // of 729 bits, 5 hashes
};

const Vector vectors[] = {
    {"", {0xb7aad9c226c6a36b, 0xb2d4e4a63557bca6}, {386, 57, 498, 169, 610}},
    {"1", {0xee93c3522330bdb7, 0x351454ca853bfd0e}, {170, 14, 239, 28, 253}},
    {"123", {0xd377b1223a3b2a80, 0x7c2f5a6d6fc03b38}, {334, 496, 156, 318, 652}},
    {"hello", {0x7fd1d0bcd0c085e1, 0x70f5d2de26f6a7d9}, {662, 410, 398, 146, 134}},
    {std::string(20, 'a'), {0x4990359cee09bbcf, 0xfe5c301da4e51e28}, {428, 497, 251, 320, 19}},
    {std::string(32, 'a'), {0xf15067adafc1e42e, 0xc01baf3715de3c45}, {37, 518, 610, 307, 399}},
    {std::string(40, 'a'), {0x6be7293367852736, 0x32983ec34b7edced}, {234, 536, 96, 343, 632}},
    {"\x03\x31\x32\xB3", {0xb13fb139ea6948cf, 0xb7776a52a0c95400}, {706, 256, 288, 567, 599}},
    {"\x03hell\xEF", {0x5ced80902de57cd4, 0x0d1d78736ed5afa3}, {140, 205, 400, 465, 660}},
};

TEST(SharedBloomVectors, HashesAndIndexesAreRedissons) {
  for (const auto& [bytes, hash, expected] : vectors) {
    EXPECT_EQ(hash_of(std::string_view{bytes}), hash) << bytes;
    EXPECT_EQ(indexes(hash, 729, 5), expected) << bytes;
  }
  EXPECT_EQ(
      indexes(hash_of(std::string_view{"123"}), 9'585'058, 7),
      (std::vector<std::uint64_t>{521240, 1161368, 4661478, 5301606, 5822846, 6462974, 378026}));
}

TEST(SharedBloomVectors, AModulusIsARemainder) {
  std::mt19937_64 random{20260102};
  const auto check = [](std::uint64_t number, std::uint64_t divisor) {
    EXPECT_EQ(Modulus{divisor}.of(number), number % divisor) << number << " % " << divisor;
  };
  constexpr std::uint64_t most = ~std::uint64_t{0} >> 1;
  for (const std::uint64_t divisor :
       {1ULL, 2ULL, 3ULL, 64ULL, 729ULL, 4294967294ULL, 4294967296ULL})
    for (const std::uint64_t number : {std::uint64_t{0}, divisor - 1, divisor, divisor + 1,
                                       most - most % divisor - 1, most - most % divisor, most})
      check(number, divisor);
  for (int i = 0; i < 100'000; ++i)
    check(random() >> 1, 1 + random() % (std::uint64_t{1} << (1 + random() % 32)));
}

std::string bytes_of(const BloomKey& key, BloomCodec codec) {
  std::string scratch;
  return std::string{encoded(key, codec, scratch)};
}

TEST(SharedBloomCodec, StringIsTheTextAndNumbersAreDecimal) {
  EXPECT_EQ(bytes_of("", BloomCodec::string), "");
  EXPECT_EQ(bytes_of("a\0b"s, BloomCodec::string), "a\0b"s);
  EXPECT_EQ(bytes_of(-7, BloomCodec::string), "-7");
  EXPECT_EQ(bytes_of(std::int64_t{1} << 40, BloomCodec::string), "1099511627776");
}

TEST(SharedBloomCodec, Kryo5WritesWhatJavaWrites) {
  const auto kryo = [](const BloomKey& key) { return bytes_of(key, BloomCodec::kryo5); };
  EXPECT_EQ(kryo("123"), "\x03\x31\x32\xB3");
  EXPECT_EQ(kryo("1"), "\x03\x82\x31") << "one character has its length";
  EXPECT_EQ(kryo(""), "\x03\x81");
  EXPECT_EQ(kryo(std::string(32, 'a')), "\x03" + std::string(31, 'a') + "\xE1");
  EXPECT_EQ(kryo(std::string(33, 'a')), "\x03\xA2" + std::string(33, 'a'));
  EXPECT_EQ(kryo(std::string(63, 'a')), "\x03\xC0\x01" + std::string(63, 'a'));
  EXPECT_EQ(kryo("ä"), "\x03\x82\xC3\xA4");
  EXPECT_EQ(kryo("€"), "\x03\x82\xE2\x82\xAC");
  EXPECT_EQ(kryo("\xF0\x9F\x98\x80"), "\x03\x83\xED\xA0\xBD\xED\xB8\x80") << "two UTF-16 units";
  EXPECT_EQ(kryo(0), "\x02\x00"s);
  EXPECT_EQ(kryo(1), "\x02\x02");
  EXPECT_EQ(kryo(-1), "\x02\x01");
  EXPECT_EQ(kryo(64), "\x02\x80\x01");
  EXPECT_EQ(kryo(std::numeric_limits<std::int32_t>::min()), "\x02\xFF\xFF\xFF\xFF\x0F");
  EXPECT_EQ(kryo(std::int64_t{1}), "\x09\x02");
  EXPECT_EQ(kryo(std::numeric_limits<std::int64_t>::min()),
            "\x09\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  EXPECT_THROW(kryo("\xFF\xFE"), Error);
}

TEST(SharedBloomDefinition, NumbersAreWrittenAsJavaWritesThem) {
  EXPECT_EQ(java_text(0.03), "0.03");
  EXPECT_EQ(java_text(0.01), "0.01");
  EXPECT_EQ(java_text(0.001), "0.001");
  EXPECT_EQ(java_text(0.0001), "1.0E-4");
  EXPECT_EQ(java_text(0.00025), "2.5E-4");
  EXPECT_EQ(java_text(0.5), "0.5");
  EXPECT_EQ(java_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(java_text(1e-12), "1.0E-12");
  EXPECT_EQ(java_text(std::numeric_limits<double>::denorm_min()), "4.9E-324");
  EXPECT_EQ(java_text(1), "1.0");
  EXPECT_EQ(java_text(123456.5), "123456.5");
  EXPECT_EQ(java_text(1e7), "1.0E7");
}

TEST(SharedBloomDefinition, SizesAreRedissons) {
  const auto made = [](std::uint64_t expected, double rate) {
    const auto definition = Definition::made({.expected = expected, .error_rate = rate});
    return definition.size + "/" + definition.hashes;
  };
  EXPECT_EQ(made(100, 0.03), "729/5");
  EXPECT_EQ(made(1'000'000, 0.01), "9585058/7");
  EXPECT_EQ(made(1'000'000, 0.03), "7298440/5");
}

TEST(SharedBloomDefinition, ASizeOutOfRangeIsRefused) {
  for (const SharedBloomSize size :
       {SharedBloomSize{.expected = 0}, SharedBloomSize{.expected = 2'000'000'000'000},
        SharedBloomSize{.expected = 1, .error_rate = 0},
        SharedBloomSize{.expected = 1, .error_rate = 1},
        SharedBloomSize{.expected = 1, .error_rate = std::nan("")},
        SharedBloomSize{.expected = 1, .error_rate = 0.9},
        SharedBloomSize{.expected = 1, .largest_link = 63}})
    try {
      Definition::made(size);
      ADD_FAILURE() << size.expected << ' ' << size.error_rate << ' ' << size.largest_link;
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::bad_argument);
    }
}

TEST(SharedBloomDefinition, MoreThanTwoToThe32BitsAreAChain) {
  const auto definition = Definition::made({.expected = 1'000'000'000, .error_rate = 0.01});
  ASSERT_EQ(definition.links.size(), 1U);
  EXPECT_TRUE(definition.grows());
  EXPECT_LE(definition.links[0].bits, SharedBloomSize::most_bits);
  EXPECT_GT(definition.links[0].capacity, 350'000'000U);
}

Value fields(std::initializer_list<const char*> texts) {
  Value::Items items;
  for (const char* const text : texts) items.push_back(text ? Value::bulk_string(text) : Value{});
  return Value::array(std::move(items));
}

TEST(SharedBloomDefinition, AChainKeepsItsErrorRateHoweverLongItGets) {
  Definition chain = Definition::made({.expected = 100, .error_rate = 0.01, .scalable = true});
  for (int link = 1; link < 20; ++link) {
    const std::string longer = chain.longer_chain();
    chain = Definition::of(
        fields({chain.size.c_str(), chain.hashes.c_str(), longer.c_str(), nullptr, nullptr}), "c");
    ASSERT_EQ(chain.links.size(), static_cast<std::size_t>(link) + 1);
    EXPECT_EQ(chain.links.back().capacity, std::uint64_t{100} << link);
  }
  double sum = 0;
  for (const Link& link : chain.links) {
    const auto keys = static_cast<double>(link.capacity);
    sum +=
        std::pow(1 - std::exp(-keys * link.hashes / static_cast<double>(link.bits)), link.hashes);
  }
  EXPECT_LT(sum, 0.0105);
}

TEST(SharedBloomDefinition, AConfigThatLiesIsRefused) {
  const std::string far(100'000, '9');
  for (const auto& [size, hashes, chain] : std::vector<std::array<const char*, 3>>{
           {"0", "5", nullptr},
           {"-1", "5", nullptr},
           {"4294967297", "5", nullptr},
           {far.c_str(), "5", nullptr},
           {"729", "0", nullptr},
           {"729", "1101", nullptr},
           {"729", "5x", nullptr},
           {"729", nullptr, nullptr},
           {nullptr, "5", nullptr},
           {"", "", nullptr},
           {"729", "5", "x"},
           {"729", "5", "0.01 4294967294"},
           {"729", "5", "0.01 4294967294|730 5 100"},
           {"729", "5", "0.01 4294967294|729 5 0"},
           {"729", "5", "0.01 4294967294|729 5 100|99999999999 5 100"},
           {"729", "5", "2 4294967294|729 5 100"},
           {"729", "5", "0.01 1|729 5 100"}}) {
    try {
      Definition::of(fields({size, hashes, chain, nullptr, nullptr}), "{x}:config");
      ADD_FAILURE() << (size ? size : "null") << ' ' << (hashes ? hashes : "null");
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::wrong_type);
      EXPECT_LT(failure.message().size(), 500U);
      EXPECT_NE(failure.message().find("{x}:config"), std::string::npos) << failure.message();
    }
  }
  std::string links = "0.01 4294967294|729 5 100";
  for (int i = 0; i < 1000; ++i) links += "|729 5 100";
  EXPECT_THROW(Definition::of(fields({"729", "5", links.c_str(), nullptr, nullptr}), "x"), Error);
  EXPECT_FALSE(Definition::of(fields({nullptr, nullptr, nullptr, nullptr, nullptr}), "x").exists());
}

TEST(SharedBloomBits, AreThoseOfTheStringInRedis) {
  Definition definition = Definition::made({.expected = 100, .error_rate = 0.03});
  FilterBits bits{definition};
  EXPECT_FALSE(bits.contains(vectors[2].hash));
  std::string text(92, '\0');
  for (const auto index : vectors[2].indexes)
    text[index / 8] = static_cast<char>(text[index / 8] | (0x80 >> index % 8));
  bits.add_bytes(0, 0, text.substr(0, 40));
  bits.add_bytes(0, 40, text.substr(40));
  bits.add_bytes(0, 88, std::string(100, '\0'));  // Redis has more than the filter says
  EXPECT_TRUE(bits.contains(vectors[2].hash));
  EXPECT_FALSE(bits.contains(vectors[3].hash));
  bits.add(vectors[3].hash);
  EXPECT_TRUE(bits.contains(vectors[3].hash));
}

}  // namespace
}  // namespace sluice::bloom
