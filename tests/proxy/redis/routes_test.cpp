#include <gtest/gtest.h>

#include "proxy/redis/redis_protocol.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy {
namespace {

TEST(RedisRoutes, EveryCommandIsDecided) {
  for (const auto& spec : resp::all_commands())
    EXPECT_TRUE(route_of(spec).has_value()) << spec.name << " has neither keys nor a row";
}

TEST(RedisRoutes, EveryRowIsACommand) {
#define ROUTE(name, route, merge) \
  EXPECT_NE(resp::find_command(std::string_view{name}), nullptr) << (name);
#define SESSION(name, verb) ROUTE(name, , )
#define CONSENT(name, route, merge) ROUTE(name, , )
#define NEVER(name, reason) ROUTE(name, , )
#include "proxy/redis/routes.def"
#undef ROUTE
#undef SESSION
#undef CONSENT
#undef NEVER
}

TEST(RedisRoutes, WhatIsServedByItsKeysIsNotOfTheConnection) {
  for (const auto& spec : resp::all_commands()) {
    const auto route = route_of(spec);
    if (route && route->route == Route::one && !route->needs_consent) {
      EXPECT_FALSE(spec.has(resp::flag_stateful)) << spec.name;
      EXPECT_FALSE(spec.has(resp::flag_admin)) << spec.name;
    }
  }
}

TEST(RedisRoutes, ConsentNamesACommandOrItsContainer) {
  const std::vector<std::string> allow{"FLUSHALL", "config get", "script"};
  EXPECT_TRUE(is_allowed("flushall", allow));
  EXPECT_TRUE(is_allowed("config|get", allow));
  EXPECT_FALSE(is_allowed("config|set", allow));
  EXPECT_TRUE(is_allowed("script|kill", allow));
  EXPECT_FALSE(is_allowed("flushdb", allow));
}

}  // namespace
}  // namespace sluice::proxy
