#include "proxy/redis/ways.hpp"

#include <gtest/gtest.h>

#include "resp/command_table.hpp"

namespace sluice::proxy {
namespace {

TEST(RedisWays, EveryCommandIsDecided) {
  for (const auto& spec : resp::all_commands())
    EXPECT_TRUE(way_of(spec).has_value()) << spec.name << " has neither keys nor a row";
}

TEST(RedisWays, EveryRowIsACommand) {
#define WAY(name, way, merge) \
  EXPECT_NE(resp::find_command(std::string_view{name}), nullptr) << (name);
#define SESSION(name, verb) WAY(name, , )
#define CONSENT(name, way, merge) WAY(name, , )
#define NEVER(name, reason) WAY(name, , )
#include "proxy/redis/ways.def"
#undef WAY
#undef SESSION
#undef CONSENT
#undef NEVER
}

TEST(RedisWays, WhatIsServedByItsKeysIsNotOfTheConnection) {
  for (const auto& spec : resp::all_commands()) {
    const auto way = way_of(spec);
    if (way && way->way == Way::one && !way->needs_consent) {
      EXPECT_FALSE(spec.has(resp::flag_stateful)) << spec.name;
      EXPECT_FALSE(spec.has(resp::flag_admin)) << spec.name;
    }
  }
}

TEST(RedisWays, ConsentNamesACommandOrItsContainer) {
  const std::vector<std::string> allow{"FLUSHALL", "config get", "script"};
  EXPECT_TRUE(is_allowed("flushall", allow));
  EXPECT_TRUE(is_allowed("config|get", allow));
  EXPECT_FALSE(is_allowed("config|set", allow));
  EXPECT_TRUE(is_allowed("script|kill", allow));
  EXPECT_FALSE(is_allowed("flushdb", allow));
}

}  // namespace
}  // namespace sluice::proxy
