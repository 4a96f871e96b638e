#include "base/json_value.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string refused(std::string_view text, JsonValue::Limits limits = {}) {
  const auto value = JsonValue::parse(text, limits);
  return value ? "taken" : value.error();
}

TEST(JsonValue, IsReadWithItsKinds) {
  const auto value = JsonValue::parse(
      R"( {"text":"a\"\\\/\b\u00e9\ud83d\ude00ü","n":-12,"big":9223372036854775808,"d":1.5e1,)"
      R"("yes":true,"no":false,"none":null,"list":[1,[],{}]} )",
      {});
  ASSERT_TRUE(value) << value.error();
  EXPECT_EQ(*value->find("text")->as_text(), "a\"\\/\b\u00e9\U0001f600ü");
  EXPECT_EQ(*value->find("n")->as_integer(), -12);
  EXPECT_FALSE(value->find("big")->as_integer()) << "64 bits";
  EXPECT_EQ(*value->find("d")->as_double(), 15);
  EXPECT_TRUE(*value->find("yes")->as_bool());
  EXPECT_FALSE(*value->find("no")->as_bool());
  EXPECT_TRUE(value->find("none")->is_null());
  EXPECT_EQ(value->find("list")->as_array()->size(), 3u);
  EXPECT_EQ(value->find("other"), nullptr);
  EXPECT_EQ(value->find("n")->find("n"), nullptr);
}

TEST(JsonValue, WhatTwoReadersMayTakeForTwoThingsIsRefused) {
  EXPECT_EQ(refused(R"({"amount":1,"amount":2})"), "'amount' stands twice");
  EXPECT_EQ(refused(R"({"a":1,"\u0061":2})"), "'a' stands twice");
  for (const auto* const text : {"",
                                 "{",
                                 "[1,]",
                                 "{\"a\":1,}",
                                 "{a:1}",
                                 "01",
                                 "-",
                                 "1.",
                                 "1e",
                                 "+1",
                                 ".5",
                                 "NaN",
                                 "nul",
                                 "\"a",
                                 "\"\n\"",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\ud800\"",
                                 "\"\\udc00\"",
                                 "\"\\ud800\\u0041\"",
                                 "\"\xff\"",
                                 "\"\xc0\xaf\"",
                                 "1 2",
                                 "{} {}",
                                 "'a'",
                                 "[1 2]",
                                 "{\"a\" 1}",
                                 "1e999",
                                 "// x\n1",
                                 "\xef\xbb\xbf"
                                 "1"})
    EXPECT_NE(refused(text), "taken") << text;
  EXPECT_NE(refused(std::string_view{"1\0", 2}), "taken");
  EXPECT_EQ(refused("[1,"), "byte 4: this is no JSON");
}

TEST(JsonValue, ItsSizeAndDepthHaveLimits) {
  EXPECT_EQ(refused("[[1]]", {.depth = 2}), "taken");
  EXPECT_EQ(refused("[[[1]]]", {.depth = 2}), "more than 2 levels of brackets");
  EXPECT_NE(refused(std::string(100'000, '['), {.bytes = 1'000'000}), "taken");
  EXPECT_EQ(refused(R"({"a":1,"b":2})", {.members = 1}), "more than 1 members of an object");
  EXPECT_EQ(refused("\"aaaa\"", {.bytes = 5}), "more than 5 bytes");
}

}  // namespace
}  // namespace sluice
