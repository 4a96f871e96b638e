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

/// Libraries and counts go from the engine to a server and back.
TEST(CommandsOnRedis, DumpsAreTakenByEachOther) {
  test::RedisServer server;
  test::PlainClient redis{server.port()};
  EngineSession engine{2};
  const auto theirs = [&](const Line& words) { return redis.command(words); };
  const auto ours = [&](const Line& words) { return engine.run(words); };
  const auto fill = [](const auto& run) {
    for (const char* const name : {"one", "two"})
      run(Line{"FUNCTION", "LOAD",
               std::string{"#!lua name="} + name + "\nredis.register_function('" + name +
                   "', function() return 'as long as it compresses, compresses, compresses' end)"});
    for (int i = 0; i < 3000; ++i) run(Line{"PFADD", "many", "m" + std::to_string(i)});
    run(Line{"PFADD", "few", "a", "b"});
  };
  const auto exchange = [](const auto& from, const auto& to) {
    EXPECT_EQ(to_string(to(
                  Line{"FUNCTION", "RESTORE", from(Line{"FUNCTION", "DUMP"}).as_text(), "FLUSH"})),
              "OK");
    EXPECT_EQ(to_string(to(Line{"FCALL", "two", "0"})), to_string(from(Line{"FCALL", "two", "0"})));
    for (const char* const key : {"many", "few"}) {
      EXPECT_EQ(
          to_string(to(Line{"RESTORE", key, "0", from(Line{"DUMP", key}).as_text(), "REPLACE"})),
          "OK");
      EXPECT_EQ(to(Line{"GET", key}), from(Line{"GET", key}));
      EXPECT_EQ(to(Line{"PFCOUNT", key}), from(Line{"PFCOUNT", key}));
    }
  };
  fill(theirs);
  exchange(theirs, ours);
  theirs(Line{"FUNCTION", "FLUSH"});
  theirs(Line{"FLUSHALL"});
  exchange(ours, theirs);
}

}  // namespace
}  // namespace sluice::engine
