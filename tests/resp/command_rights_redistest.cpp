// Our categories and uses of keys against the ACL CAT and COMMAND of a running redis-server.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "resp/command_rights.hpp"
#include "resp/told_commands.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::resp {
namespace {

using Names = std::set<std::string>;

struct CommandRightsOfRedis : testing::Test {
  test::RedisServer server;
  test::PlainClient client{server.port()};
  test::ToldCommands told = test::told_commands(client);

  Names in_category(std::string_view category) {
    Names names;
    const auto reply = client.command({"ACL", "CAT", category});
    for (const auto& name : reply.as_items()) names.insert(name.as_text());
    return names;
  }
};

/// The server calls itself newer than Redis 7.0: what we tell of these is as there.
bool is_of_newer_servers(const CommandSpec& spec, std::string_view category) {
  return spec.name == "wait" && category == "blocking";
}

TEST_F(CommandRightsOfRedis, CategoriesAreThoseOfAclCat) {
  const auto categories = client.command({"ACL", "CAT"});
  EXPECT_EQ(categories.as_items().size(), all_categories().size());
  for (const auto& category : all_categories()) {
    const auto theirs = in_category(category.name);
    ASSERT_FALSE(theirs.empty()) << category.name;
    for (const auto& spec : all_commands()) {
      const std::string name{spec.name};
      if (!told.contains(name) || is_of_newer_servers(spec, category.name)) continue;
      EXPECT_EQ((categories_of(spec) & category.bit) != 0, theirs.contains(name))
          << name << " in @" << category.name;
    }
  }
}

/// What the flags of a specification of keys say.
KeyUse use_of(const Names& flags) {
  auto use = flags.contains("access") ? KeyUse::read : KeyUse::nothing;
  for (const auto* change : {"insert", "delete", "update"})
    if (flags.contains(change)) use = use | KeyUse::write;
  return use;
}

Names flags_of_keys(const Value& specification) {
  constexpr std::size_t notes = 2;  // before the flags, where there are some
  const auto& items = specification.as_items();
  const std::size_t at = items.at(0).as_text() == "flags" ? 1 : 1 + notes;
  Names flags;
  for (const auto& flag : items.at(at).as_items()) flags.insert(flag.as_text());
  return flags;
}

TEST_F(CommandRightsOfRedis, KeysAreUsedAsCommandSays) {
  constexpr std::size_t specifications = 8;
  std::size_t seen = 0;
  for (const auto& spec : all_commands()) {
    const auto entry = told.find(std::string{spec.name});
    if (entry == told.end()) continue;
    std::vector<KeyUse> theirs;
    for (const auto& specification : entry->second.as_items().at(specifications).as_items()) {
      const auto flags = flags_of_keys(specification);
      if (!flags.contains("not_key") && !flags.contains("variable_flags"))
        theirs.push_back(use_of(flags));
    }
    if (theirs.empty()) continue;
    ++seen;
    const auto ours = uses_of(spec, {});
    EXPECT_EQ(ours.first, theirs.front()) << spec.name;
    const bool has_others = theirs.size() > 1 || spec.last_key != spec.first_key;
    if (has_others && spec.name != "sort_ro") {  // whose other keys have no place
      EXPECT_EQ(ours.others, theirs.back()) << spec.name;
    }
  }
  EXPECT_GT(seen, 180U);
}

}  // namespace
}  // namespace sluice::resp
