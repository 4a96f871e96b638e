#include "proxy/config/ring_move.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "proxy/config/read.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::config {
namespace {

Config file(const std::string& servers, const std::string& more = "  redis: true\n") {
  return read("alpha:\n  listen: 127.0.0.1:1\n" + more + "  servers:\n" + servers, "test.yml");
}

const std::string one_server = "   - 127.0.0.1:7001:1 a\n";
const std::string two_servers = one_server + "   - 127.0.0.1:7002:1 b\n";

std::string refusal(const Config& before, const Config& after) {
  try {
    static_cast<void>(moving_pools(before, after));
  } catch (const Error& why) {
    return why.message();
  }
  return {};
}

TEST(RingMoveTest, PoolsWhoseRingChangesMove) {
  const auto before = file(one_server), after = file(two_servers);
  ASSERT_EQ(moving_pools(before, after).size(), 1U);
  EXPECT_NE(print_of_move(before, after), print_of_move(after, before));
  EXPECT_TRUE(has_rings_of(with_rings_of(before, after), after));
  EXPECT_FALSE(has_rings_of(before, after));
}

TEST(RingMoveTest, WhatCannotBeMovedIsRefusedWithItsReason) {
  EXPECT_TRUE(refusal(file(two_servers), file(two_servers)).contains("no key moves"));
  EXPECT_TRUE(refusal(file(one_server, ""), file(two_servers, "")).contains("memcached"));
  for (const auto& [line, why] : {std::pair{"distribution: random", "no home"},
                                  {"auto_eject_hosts: true", "third home"},
                                  {"compat: strict", "twemproxy"}}) {
    const auto more = fmt::format("  redis: true\n  {}\n", line);
    EXPECT_TRUE(refusal(file(one_server, more), file(two_servers, more)).contains(why)) << line;
  }
  EXPECT_TRUE(refusal(file(one_server), file(one_server + "   - /run/redis.sock:1 b\n"))
                  .contains("socket"));
  const std::string watched = "  redis: true\n  sentinels: [h:26379]\n";
  EXPECT_TRUE(
      refusal(file("   - h:1:1 one\n", watched), file("   - h:1:1 one\n   - h:2:1 two\n", watched))
          .contains("Sentinels"));
}

TEST(RingMoveTest, AKeyGoesFromItsOldHomeToItsNewOneAndNowhereElse) {
  const auto before = file(one_server), after = file(two_servers);
  const auto pools = moving_pools(before, after);
  const Journey journey{pools.front()};
  const auto &a = after.pools[0].servers[0].endpoint, &b = after.pools[0].servers[1].endpoint;
  int moved = 0;
  for (int i = 0; i < 100; ++i) {
    const auto key = fmt::format("{}key", i);
    EXPECT_EQ(journey.destination(b, key), std::nullopt);
    const auto to = journey.destination(a, key);
    EXPECT_EQ(to.has_value(), make_homes(after.pools[0]).of(key) == 1) << key;
    EXPECT_EQ(to.value_or(b), b);
    moved += to ? 1 : 0;
  }
  EXPECT_GT(moved, 0);
  EXPECT_LT(moved, 100);
}

TEST(RingMoveTest, APhaseHasTheServersOfBothRingsAndTheUserOfTheMove) {
  const auto before = file(two_servers), after = file(one_server);
  const auto moving = in_phase(before, after, RingMove::Phase::moving, {"mover", "secret"});
  const auto& pool = moving.pools.front();
  EXPECT_EQ(pool.servers.size(), 1U);
  EXPECT_EQ(all_servers(pool).size(), 2U);
  EXPECT_EQ(pool.server_user, "mover");
  EXPECT_EQ(pool.move->other->servers.size(), 2U);
}

}  // namespace
}  // namespace sluice::proxy::config
