#include "resp/command_rights.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "resp/request_parser.hpp"

namespace sluice::resp {
namespace {

bool is_in(const CommandSpec& spec, std::string_view category) {
  const auto found = std::ranges::find(all_categories(), category, &Category::name);
  return (categories_of(spec) & found->bit) != 0;
}

TEST(CommandRights, ACommandOfNoTableIsInTheCategoriesThatItsFlagsSay) {
  const auto index = all_commands().size() + 1;
  const CommandSpec reads{"my.get", -2, flag_readonly, 1, 1, 1, index};
  const CommandSpec waits{"my.pop", -2, flag_write | flag_blocking, 1, 1, 1, index};
  EXPECT_TRUE(is_in(reads, "read"));
  EXPECT_TRUE(is_in(waits, "write"));
  EXPECT_TRUE(is_in(waits, "blocking"));
  for (const auto& category : {"write", "fast", "slow", "dangerous"})
    EXPECT_FALSE(is_in(reads, category)) << category;
}

struct Row {
  const char* line;
  KeyUse first, others;
};

TEST(CommandRights, WhatIsDoneWithAKeyDependsOnTheWordsOfSomeCommands) {
  constexpr auto nothing = KeyUse::nothing, read = KeyUse::read, write = KeyUse::write,
                 both = KeyUse::both;
  constexpr Row rows[] = {
      {"GET k", read, read},
      {"SET k v", write, write},
      {"SET k v EX 10 GET", both, write},
      {"SET k get", write, write},
      {"BITFIELD k GET u8 0", read, write},
      {"BITFIELD k OVERFLOW FAIL GET u8 0", read, write},
      {"BITFIELD k GET u8 0 SET u8 0 1", both, write},
      {"BITFIELD k GET", both, write},
      {"EXISTS a b", nothing, nothing},
      {"COPY a b", read, write},
      {"SORT a STORE b", read, write},
      {"ZUNIONSTORE d 1 a", write, read},
  };
  for (const auto& row : rows) {
    std::string text;
    std::vector<std::string_view> words;
    ASSERT_TRUE(split_inline(row.line, text, words));
    const auto* const spec = find_command(std::span<const std::string_view>{words});
    ASSERT_NE(spec, nullptr);
    const auto uses = uses_of(*spec, words);
    EXPECT_EQ(uses.first, row.first) << row.line;
    EXPECT_EQ(uses.others, row.others) << row.line;
  }
}

}  // namespace
}  // namespace sluice::resp
