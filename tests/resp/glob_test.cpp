#include "resp/glob.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace sluice::resp {
namespace {

TEST(Glob, MatchesAsRedisDoes) {
  struct Row {
    std::string_view pattern, text;
    bool matches;
  };
  constexpr Row rows[] = {{"*", "", true},
                          {"a*c", "abbc", true},
                          {"a*c", "abbd", false},
                          {"h?llo", "hello", true},
                          {"h?llo", "hllo", false},
                          {"h[ae]llo", "hallo", true},
                          {"h[^e]llo", "hello", false},
                          {"h[a-c]llo", "hbllo", true},
                          {"h[c-a]llo", "hbllo", true},
                          {"\\*", "*", true},
                          {"\\*", "a", false},
                          {"a\\", "a\\", true},
                          {"[", "[", false},
                          {"**b", "aab", true},
                          {"*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false},
                          {"[\\]]", "]", true},
                          {"", "a", false},
                          {"", "", true}};
  for (const auto& row : rows)
    EXPECT_EQ(glob_matches(row.pattern, row.text), row.matches) << row.pattern << " " << row.text;
}

}  // namespace
}  // namespace sluice::resp
