// The same tables on a real redis-server, so that they say what Redis says.
#include <gtest/gtest.h>

#include "engine/commands/command_cases.hpp"
#include "engine/engine_session.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::engine {
namespace {

TEST(CommandsOnRedis, TheTablesAreRight) {
  test::RedisServer server;
  for (const auto family : all_tables)
    for (const auto& table : family()) {
      if (!table.same_on_redis) continue;
      SCOPED_TRACE(table.name);
      test::PlainClient redis{server.port()};
      redis.command({"HELLO", "3"});
      redis.command({"FLUSHALL"});
      for (const auto& row : table.cases)
        EXPECT_EQ(to_string(redis.command(words_of(row.command))), row.reply) << row.command;
    }
}

}  // namespace
}  // namespace sluice::engine
