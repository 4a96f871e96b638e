#include "sale/order_store_text.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "sluice/error.hpp"

namespace sluice::sale {
namespace {

TEST(OrderStoreText, KeepsReadableTextReadable) {
  EXPECT_EQ(to_column("buyer-42"), "buyer-42");
  EXPECT_EQ(to_column("Jürgen 茅台 🍶"), "Jürgen 茅台 🍶");
  EXPECT_EQ(to_column("100%"), "100%25");
  EXPECT_EQ(to_column(std::string("a\0b\n", 4)), "a%00b%0A");
}

TEST(OrderStoreText, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(to_column("\xff"), "%FF");
  EXPECT_EQ(to_column("\xc0\xaf"), "%C0%AF") << "overlong";
  EXPECT_EQ(to_column("\xed\xa0\x80"), "%ED%A0%80") << "a surrogate";
  EXPECT_EQ(to_column("\xf4\x90\x80\x80"), "%F4%90%80%80") << "above U+10FFFF";
  EXPECT_EQ(to_column("\xe8\x8c"), "%E8%8C") << "cut off";
  EXPECT_EQ(to_column("ü\xff"), "%C3%BC%FF");
}

TEST(OrderStoreText, ComesBackAndNeverCollides) {
  std::mt19937 random{7};
  std::set<std::string> seen;
  std::set<std::string> columns;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    const auto size = 1 + random() % 4;
    static constexpr unsigned char alphabet[] = {0,    '%',  '2',  '5',  'F', 'a',
                                                 0x7f, 0x80, 0xbc, 0xc3, 0xff};
    for (std::size_t k = 0; k < size; ++k)
      bytes += static_cast<char>(alphabet[random() % sizeof alphabet]);
    const auto column = to_column(bytes);
    EXPECT_EQ(from_column(column), bytes);
    seen.insert(bytes);
    columns.insert(column);
  }
  EXPECT_EQ(seen.size(), columns.size());
}

TEST(OrderStoreText, RefusesWhatItDidNotWrite) {
  for (const auto* const text : {"%", "%2", "a%zz", "%a"})
    EXPECT_THROW(from_column(text), Error) << text;
}

}  // namespace
}  // namespace sluice::sale
