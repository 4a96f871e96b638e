#include "resp/command_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "resp/request_parser.hpp"

namespace sluice::resp {
namespace {

TEST(CommandTable, FindsEveryRowInAnyCase) {
  std::size_t index = 0;
  for (const auto& spec : all_commands()) {
    EXPECT_EQ(spec.index, index++);
    std::string upper{spec.name};
    std::ranges::transform(upper, upper.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    EXPECT_EQ(find_command(spec.name), &spec) << spec.name;
    EXPECT_EQ(find_command(upper), &spec) << upper;
  }
  EXPECT_TRUE(std::ranges::is_sorted(all_commands(), {}, &CommandSpec::name));
}

TEST(CommandTable, KnowsNothingElse) {
  for (const std::string_view name : {"", "ge", "gett", "xgroup|", "|create", "GET ", "g\x45t\xc9"})
    EXPECT_EQ(find_command(name), nullptr) << name;
  EXPECT_EQ(find_command(std::string(100'000, 'g')), nullptr);
  EXPECT_EQ(find_command(std::string_view{"get\0", 4}), nullptr);
}

TEST(CommandTable, FindsSubcommands) {
  const auto* xgroup = find_command("XGROUP");
  ASSERT_NE(xgroup, nullptr);
  EXPECT_TRUE(xgroup->has(flag_container));
  EXPECT_EQ(find_subcommand(*xgroup, "Create"), find_command("xgroup|create"));
  EXPECT_EQ(find_subcommand(*xgroup, "nothing"), nullptr);
  EXPECT_EQ(find_subcommand(*find_command("get"), "create"), nullptr);
  // Every row with a bar is the subcommand of its container, and containers have some.
  for (const auto& spec : all_commands()) {
    const auto bar = spec.name.find('|');
    if (bar == std::string_view::npos) continue;
    const auto* container = find_command(spec.name.substr(0, bar));
    ASSERT_NE(container, nullptr) << spec.name;
    EXPECT_EQ(find_subcommand(*container, spec.name.substr(bar + 1)), &spec) << spec.name;
  }
}

TEST(CommandTable, FindsTheRowOfARequest) {
  const auto row = [](std::vector<std::string_view> words) {
    return find_command(std::span<const std::string_view>{words});
  };
  EXPECT_EQ(row({"GET", "create"}), find_command("get"));
  EXPECT_EQ(row({"xgroup", "CREATE", "s"}), find_command("xgroup|create"));
  EXPECT_EQ(row({"xgroup"}), find_command("xgroup"));
  EXPECT_EQ(row({"xgroup", "bake"}), nullptr);
  EXPECT_EQ(row({}), nullptr);
}

TEST(CommandTable, ChecksArity) {
  EXPECT_TRUE(find_command("get")->arity_fits(2));
  EXPECT_FALSE(find_command("get")->arity_fits(3));
  EXPECT_TRUE(find_command("del")->arity_fits(5));
  EXPECT_FALSE(find_command("del")->arity_fits(1));
}

/// The keys of a typed command, joined by blanks; "-" when they cannot be known.
std::string keys(std::string_view line) {
  std::string text;
  std::vector<std::string_view> words;
  EXPECT_TRUE(split_inline(line, text, words));
  std::vector<std::size_t> positions{99};
  if (!keys_of(*find_command(std::span<const std::string_view>{words}), words, positions))
    return "-";
  std::string joined;
  for (const auto at : positions) joined += (joined.empty() ? "" : " ") + std::string{words.at(at)};
  return joined;
}

TEST(KeysOf, FixedPositions) {
  EXPECT_EQ(keys("GET k"), "k");
  EXPECT_EQ(keys("PING"), "");
  EXPECT_EQ(keys("MSET a 1 b 2"), "a b");
  EXPECT_EQ(keys("BLPOP a b 0"), "a b");
  EXPECT_EQ(keys("XGROUP CREATE s g $"), "s");
  EXPECT_EQ(keys("BITOP AND d a b"), "d a b");
  EXPECT_EQ(keys("SPUBLISH c m"), "c");
  EXPECT_EQ(keys("GET"), "-");
}

TEST(KeysOf, MovableKeys) {
  EXPECT_EQ(keys("EVAL 'return 1' 2 a b c"), "a b");
  EXPECT_EQ(keys("EVAL 'return 1' 0 c"), "");
  EXPECT_EQ(keys("XREAD COUNT 1 BLOCK 0 STREAMS a b 0 0"), "a b");
  EXPECT_EQ(keys("XREADGROUP GROUP streams streams NOACK STREAMS a >"), "a");
  EXPECT_EQ(keys("ZUNIONSTORE d 2 a b WEIGHTS 1 2"), "d a b");
  EXPECT_EQ(keys("ZINTERCARD 1 a LIMIT 2"), "a");
  EXPECT_EQ(keys("SORT k BY store GET store LIMIT 0 1 STORE d"), "k d");
  EXPECT_EQ(keys("SORT k"), "k");
  EXPECT_EQ(keys("GEORADIUS g 0 0 1 m STORE a STOREDIST b"), "g a b");
  EXPECT_EQ(keys("MIGRATE h 1 k 0 1 COPY"), "k");
  EXPECT_EQ(keys("MIGRATE h 1 '' 0 1 AUTH2 keys keys KEYS a b"), "a b");
}

TEST(KeysOf, HostileCountsAndOptions) {
  for (const char* line :
       {"EVAL x 3 a b", "EVAL x -1 a", "EVAL x 99999999999999999999 a", "EVAL x 1x a",
        "EVAL x '' a", "ZUNION 0 a", "ZUNIONSTORE d 18446744073709551615 a",
        "XREAD COUNT 1 STREAMS", "XREAD BLOCK STREAMS a 0", "XREAD STREAMS a b 0",
        "XREAD COUNT 2 3 4", "MIGRATE h 1 '' 0 1 AUTH KEYS"})
    EXPECT_EQ(keys(line), "-") << line;
  EXPECT_EQ(keys("SORT k STORE"), "k");
  EXPECT_EQ(keys("SORT k LIMIT 0"), "k");
}

}  // namespace
}  // namespace sluice::resp
