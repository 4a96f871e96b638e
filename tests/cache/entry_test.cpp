// How a cached value lies in the store: what is read, and what is refused.
#include "cache/entry.hpp"

#include <gtest/gtest.h>

#include "sluice/error.hpp"

namespace sluice::cache {
namespace {

constexpr std::string_view whole = "SLC1v 1767225600000000 1523\nthe value\n";

TEST(CacheEntry, IsReadAsItWasWritten) {
  const auto entry = parse_entry(whole, "k");
  ASSERT_TRUE(entry);
  EXPECT_FALSE(entry->is_absent);
  EXPECT_EQ(entry->fresh_until_us, 1767225600000000);
  EXPECT_EQ(entry->load_us, 1523);
  EXPECT_EQ(entry->payload, "the value\n");
  EXPECT_EQ(entry->head, "SLC1v 1767225600000000 1523\n");
  EXPECT_TRUE(parse_entry("SLC1a 0 0\n", "k")->is_absent);
}

TEST(CacheEntry, CutAtEveryByteOfItsHeadItIsNoEntry) {
  const std::size_t head = whole.find('\n');
  for (std::size_t length = 0; length <= head; ++length) {
    if (length == 3) continue;  // "SLC": as of another version
    const auto cut = whole.substr(0, length);
    if (cut.starts_with("SLC") && !cut.starts_with("SLC1"))
      EXPECT_FALSE(parse_entry(cut, "k"));
    else
      EXPECT_THROW(parse_entry(cut, "k"), Error) << length;
  }
}

TEST(CacheEntry, WhatOthersWroteIsRefusedAndAnotherVersionIsAMiss) {
  for (const std::string_view text :
       {"", "42", "SL", "SLC1", "SLC1x 1 1\n", "SLC1v 1\n", "SLC1v -1 1\n", "SLC1v 1 -1\n",
        "SLC1v 1 1 1\n", "SLC1v 99999999999999999999 1\n", "SLC1v 9223372036854775807 1\n",
        "SLC1v  1\n", "SLC1v 1 1"})
    try {
      parse_entry(text, "user:42");
      FAIL() << text;
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::wrong_type);
      EXPECT_NE(failure.message().find("user:42"), std::string::npos);
    }
  EXPECT_FALSE(parse_entry("SLC2anything", "k"));
}

TEST(CacheNames, NoKeyFromOutsideChoosesItsSlot) {
  const Names names{"user"};
  EXPECT_EQ(names.value_of("42"), "user:42");
  EXPECT_EQ(names.value_of("a{b}%"), "user:a%7Bb%7D%25");
  EXPECT_NE(names.value_of("{"), names.value_of("%7B"));
  EXPECT_NE(names.value_of("admin:1"), Names{"user:admin"}.value_of("1"));
  EXPECT_EQ(Names::lease_of(names.value_of("42")), "sluice_cache_lease:{user:42}");
  const Names tagged{"{shop}:user"};
  EXPECT_EQ(tagged.value_of("4}2"), "{shop}:user:4%7D2");
  EXPECT_EQ(Names::lease_of(tagged.value_of("42")), "sluice_cache_lease:{shop}:user:42");
}

TEST(CacheNames, AKeyIsShownOnOneShortLine) {
  EXPECT_EQ(shown("a\nb"), "a?b");
  EXPECT_EQ(shown(std::string(1000, 'x')).size(), 203U);
}

}  // namespace
}  // namespace sluice::cache
