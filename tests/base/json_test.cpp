#include "base/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace sluice {
namespace {

TEST(Json, ObjectsAndArraysNest) {
  EXPECT_EQ(Json::object().text(), "{}");
  EXPECT_EQ(Json::array().text(), "[]");
  const Json json =
      Json::object({{"ok", true}, {"names", Json::array({"a", "b"})}, {"none", Json{}}, {"n", -5}});
  EXPECT_EQ(json.text(), R"({"ok":true,"names":["a","b"],"none":null,"n":-5})");
  Json list = Json::array();
  list.add(Json::object({{"x", 1}})).add(Json::raw("[2]"));
  EXPECT_EQ(list.text(), R"([{"x":1},[2]])");
  EXPECT_EQ(Json::object().add("list", list).add("more", false).text(),
            R"({"list":[{"x":1},[2]],"more":false})");
}

TEST(Json, NumbersAreWhatTheyWere) {
  EXPECT_EQ(Json{std::uint64_t{18'446'744'073'709'551'615U}}.text(), "18446744073709551615");
  EXPECT_EQ(Json{0.1}.text(), "0.1");
  EXPECT_EQ(Json{std::nan("")}.text(), "null");
  EXPECT_EQ(Json{HUGE_VAL}.text(), "null");
}

TEST(Json, TextIsEscaped) {
  EXPECT_EQ(Json{"a\"b\\c\n\t\r\x01\x7f"}.text(), "\"a\\\"b\\\\c\\n\\t\\r\\u0001\x7f\"");
  EXPECT_EQ(Json{std::string_view("\0x", 2)}.text(), "\"\\u0000x\"");
  EXPECT_EQ(Json{"茅台 \xf0\x9f\x8d\xb6"}.text(), "\"茅台 \xf0\x9f\x8d\xb6\"");
}

TEST(Json, BytesThatAreNoUtf8AreReplacedOneByOne) {
  const std::string wrong = "\xef\xbf\xbd";
  EXPECT_EQ(Json{"a\xff"}.text(), "\"a" + wrong + "\"");
  EXPECT_EQ(Json{"\xe8\x8c"}.text(), '"' + wrong + wrong + '"') << "cut short";
  EXPECT_EQ(Json{"\xc0\xaf"}.text(), '"' + wrong + wrong + '"') << "longer than need be";
  EXPECT_EQ(Json{"\xed\xa0\x80"}.text(), '"' + wrong + wrong + wrong + '"') << "a surrogate";
  EXPECT_EQ(Json{"\xf4\x90\x80\x80"}.text(), '"' + wrong + wrong + wrong + wrong + '"');
}

}  // namespace
}  // namespace sluice
