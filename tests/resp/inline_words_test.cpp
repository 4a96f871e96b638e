#include "resp/request_parser.hpp"

#include <gtest/gtest.h>

namespace sluice::resp {
namespace {

using Texts = std::vector<std::string>;

/// The words of a line; one word "!" for a line that is refused.
Texts split(std::string_view line) {
  std::string text;
  std::vector<std::string_view> words;
  if (!split_inline(line, text, words)) return {"!"};
  return {words.begin(), words.end()};
}

TEST(InlineWords, AreSplitAtBlanks) {
  EXPECT_EQ(split("set  k\tv "), (Texts{"set", "k", "v"}));
  EXPECT_EQ(split(""), Texts{});
  EXPECT_EQ(split(" \t\v\f\r"), Texts{});
}

TEST(InlineWords, DoubleQuotesAndEscapes) {
  EXPECT_EQ(split(R"(set "a b" "\n\r\t\b\a\"\\\x41\xfF\q")"),
            (Texts{"set", "a b", "\n\r\t\b\a\"\\A\xffq"}));
  EXPECT_EQ(split(R"("")"), Texts{""});
  EXPECT_EQ(split(R"("\x4")"), Texts{"x4"});
  EXPECT_EQ(split(R"("\x00")"), (Texts{std::string(1, '\0')}));
}

TEST(InlineWords, SingleQuotesTakeAllButThemselves) {
  EXPECT_EQ(split(R"('a "b" \n' 'it\'s')"), (Texts{R"(a "b" \n)", "it's"}));
}

TEST(InlineWords, AQuoteMayOpenInAWordButMustCloseIt) {
  EXPECT_EQ(split(R"(ab"c d")"), Texts{"abc d"});
  EXPECT_EQ(split(R"("a"b)"), Texts{"!"});
  EXPECT_EQ(split(R"('a'"b")"), Texts{"!"});
}

TEST(InlineWords, OpenQuotesAreRefused) {
  for (const char* line : {"\"", "'", "\"abc", "a 'b c", R"("\)", R"("\")", R"('\)"})
    EXPECT_EQ(split(line), Texts{"!"}) << line;
}

TEST(InlineWords, ANulEndsTheLine) {
  EXPECT_EQ(split(std::string_view{"a b\0c d", 7}), (Texts{"a", "b"}));
}

}  // namespace
}  // namespace sluice::resp
