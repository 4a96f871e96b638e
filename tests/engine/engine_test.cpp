// What goes around the commands: waiting, signals, messages, expiry, the database that the log is
// in.
#include <gtest/gtest.h>

#include <set>

#include "engine/core/keyspace.hpp"
#include "engine/engine_session.hpp"
#include "resp/command_table.hpp"

namespace sluice::engine {
namespace {

TEST(Engine, ACommandThatFindsNothingWaits) {
  EngineSession session;
  EXPECT_EQ(to_string(session.run("BLPOP a b 1.5")), "(nil)");
  ASSERT_EQ(session.blocks.size(), 1U);
  EXPECT_EQ(session.blocks[0].keys, (Line{"a", "b"}));
  EXPECT_EQ(session.blocks[0].timeout_ms, 1500);
  EXPECT_TRUE(session.effects.empty());

  session.run("RPUSH b x");
  EXPECT_EQ(session.signalled, Line{"b"});
  session.run("RPUSH b y");
  EXPECT_TRUE(session.signalled.empty()) << "nobody can be waiting for a list that was there";

  EXPECT_EQ(to_string(session.run("BLPOP a b 1.5")), "[\"b\", \"x\"]");
  EXPECT_EQ(session.effects_text(), "LPOP b");
}

TEST(Engine, EveryCommandThatWaitsDoes) {
  for (const auto command :
       {"BRPOP a 0", "BLMOVE a b LEFT LEFT 0", "BRPOPLPUSH a b 0", "BLMPOP 0 1 a LEFT",
        "BZPOPMIN a 0", "BZPOPMAX a 0", "BZMPOP 0 1 a MIN"}) {
    EngineSession session;
    session.run(command);
    ASSERT_EQ(session.blocks.size(), 1U) << command;
    EXPECT_EQ(session.blocks[0].keys, Line{"a"}) << command;
  }
}

TEST(Engine, WhateverBringsElementsSignals) {
  for (const auto command :
       {"LPUSH a x", "ZADD a 1 x", "RENAME full a", "COPY full a", "LMOVE full a LEFT LEFT",
        "ZUNIONSTORE a 1 zset", "ZRANGESTORE a zset 0 -1"}) {
    EngineSession session;
    session.run("RPUSH full x");
    session.run("ZADD zset 1 x");
    session.run(command);
    EXPECT_EQ(session.signalled, Line{"a"}) << command;
  }
}

TEST(Engine, MessagesAreKeptForAfterwards) {
  EngineSession session;
  session.engine.receivers = [](std::string_view channel, bool) {
    return channel == "news" ? 2U : 0U;
  };
  EXPECT_EQ(to_string(session.run("PUBLISH news hello")), "(integer) 2");
  ASSERT_EQ(session.published.size(), 1U);
  EXPECT_EQ(session.published[0].payload, "hello");
  EXPECT_TRUE(session.effects.empty());
}

TEST(Engine, ExpiresWhatIsDueAndLogsIt) {
  EngineSession session;
  session.run("SET a v PX 10");
  session.run("SET b v PX 20");
  session.run("SET c v");
  session.session.database = 3;
  session.run("SET d v PX 5");
  EXPECT_EQ(session.effects_text(), "SELECT 3; SET d v PXAT 1700000000005");
  session.now_us += 15'000;
  EXPECT_EQ(session.engine.soonest_expiry_ms(), 1'700'000'000'005);

  Context context{session.engine, session.session, session.now_us};
  EXPECT_EQ(session.engine.expire_some(context, 1), 1U);
  EXPECT_EQ(session.engine.expire_some(context, 10), 1U);
  EXPECT_EQ(context.effects(),
            (std::vector<Line>{{"SELECT", "0"}, {"DEL", "a"}, {"SELECT", "3"}, {"DEL", "d"}}));
  EXPECT_LE(session.engine.soonest_expiry_ms(), 1'700'000'000'020);
  session.engine.find_soonest_expiry();
  EXPECT_EQ(session.engine.soonest_expiry_ms(), 1'700'000'000'020);
  EXPECT_EQ(session.engine.keyspace(0).size(), 2U);
}

TEST(Engine, ACopyToAnotherDatabaseLogsWhatHasExpiredThere) {
  EngineSession session;
  session.run("SET k v");
  session.session.database = 1;
  session.run("SET k old PX 5");
  session.session.database = 0;
  session.run("GET k");
  session.now_us += 6'000;
  EXPECT_EQ(to_string(session.run("COPY k k DB 1")), "(integer) 1");
  EXPECT_EQ(session.effects_text(),
            "DEL k; SELECT 0; COPY k k DB 1");  // the log's end is in database 1
}

TEST(Engine, AScriptIsLoggedByItsEffectsAlone) {
  EngineSession session;
  EXPECT_EQ(to_string(session.run("EVAL \"redis.call('SET', KEYS[1], 'v', 'PX', 100) return "
                                  "redis.call('INCR', KEYS[2])\" 2 a n")),
            "(integer) 1");
  EXPECT_EQ(session.effects_text(), "SET a v PXAT 1700000000100; INCR n");
}

TEST(Engine, WithoutALogNothingIsBuilt) {
  EngineSession session;
  session.engine.keeps_log = false;
  session.run("SET k v PX 5");
  session.now_us += 6'000;
  session.run("GET k");
  EXPECT_TRUE(session.effects.empty());
}

TEST(Engine, ASeedReproducesARun) {
  const auto drawn = [](std::uint64_t seed) {
    EngineSession session{3, seed};
    session.run("SADD s 1 2 3 4 5 6 7 8 9 10");
    return to_string(session.run("SRANDMEMBER s 10")) + session.engine.run_id;
  };
  EXPECT_EQ(drawn(5), drawn(5));
  EXPECT_NE(drawn(5), drawn(6));
}

TEST(Engine, TellsOfItself) {
  EngineSession session;
  session.engine.more_info = [](std::string_view section, std::string& text) {
    if (section == "persistence") text += "aof_enabled:1\r\n";
  };
  session.run("SET k v PX 100");
  const auto text = session.run("INFO").as_text();
  for (const auto part :
       {"redis_version:7.2.0\r\n", "run_id:", "aof_enabled:1\r\n", "db0:keys=1,expires=1,"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(session.run("INFO keyspace").as_text().find("redis_version"), std::string::npos);
  session.engine.configure = [](std::string_view name, std::string_view) {
    return name == "appendfsync" ? std::string{"no"} : std::string{};
  };
  EXPECT_TRUE(session.run("CONFIG SET appendfsync always").is_error());
}

TEST(Engine, E13_CommandNamesWhatIsAnsweredAndNothingElse) {
  EngineSession session;
  const auto is_known = [&](const Line& words) {
    const auto reply = session.run(words);
    return !reply.is_error() || !reply.as_text().contains("unknown");
  };
  std::set<std::string, std::less<>> told;
  std::set<std::string, std::less<>> listed_below;
  const auto names = session.run("COMMAND LIST");
  for (const auto& name : names.as_items())
    (name.as_text().contains('|') ? listed_below : told).emplace(name.as_text());
  EXPECT_EQ(session.run("COMMAND COUNT").as_integer(), static_cast<std::int64_t>(told.size()));
  EXPECT_EQ(session.run("COMMAND").as_items().size(), told.size());
  EXPECT_EQ(session.run("COMMAND DOCS").as_items().size(), 2 * told.size());

  std::set<std::string, std::less<>> subcommands;
  const auto rows = session.run("COMMAND INFO");
  for (const auto& row : rows.as_items())
    for (const auto& sub : row.as_items().at(9).as_items())
      subcommands.emplace(sub.as_items().front().as_text());
  EXPECT_TRUE(subcommands.contains("xgroup|create"));
  EXPECT_EQ(subcommands, listed_below);
  const auto docs = to_string(session.run("COMMAND DOCS pubsub"));
  EXPECT_NE(docs.find(R"(map["subcommands", map["pubsub|channels", map[],)"), docs.npos) << docs;

  for (const auto& spec : resp::all_commands()) {
    const auto bar = spec.name.find('|');
    const bool is_sub = bar != std::string_view::npos;
    Line words{std::string{spec.name.substr(0, bar)}};
    if (is_sub) words.emplace_back(spec.name.substr(bar + 1));
    const bool named = (is_sub ? subcommands : told).contains(spec.name);
    if (spec.has(resp::flag_stateful)) {
      EXPECT_FALSE(named) << spec.name << " is refused outside a script";
    } else {
      EXPECT_EQ(is_known(words), named) << spec.name;
    }
  }

  EXPECT_EQ(to_string(session.run("COMMAND INFO migrate cluster acl|help select")),
            "[(nil), (nil), (nil), (nil)]");
  EXPECT_EQ(to_string(session.run("COMMAND LIST FILTERBY PATTERN getr*")), "set[\"getrange\"]");
  EXPECT_TRUE(session.run("COMMAND LIST FILTERBY ACLCAT read").is_error());
  EXPECT_EQ(session.run("COMMAND DOCS migrate get").as_items().size(), 2U);
  EXPECT_TRUE(session.run("COMMAND GETKEYS MIGRATE a b c 0 1").is_error());
  EXPECT_TRUE(session.run(R"x(EVAL "return redis.acl_check_cmd('migrate')" 0)x").is_error());
}

TEST(Engine, RefusesWhatItDoesNotOffer) {
  EngineSession session;
  EXPECT_TRUE(session.run(Line{}).is_error());
  EXPECT_TRUE(session.run("CLUSTER INFO").is_error());
  EXPECT_TRUE(session.run(Line{std::string(10'000, 'x')}).as_text().size() < 300);
}

TEST(Engine, RepliesInRespTwo) {
  EngineSession session{2};
  session.run("HSET h a 1");
  session.run("ZADD z 1.5 m");
  session.run("SADD s m");
  EXPECT_EQ(to_string(session.run("HGETALL h")), "[\"a\", \"1\"]");
  EXPECT_EQ(to_string(session.run("ZRANGE z 0 -1 WITHSCORES")), "[\"m\", \"1.5\"]");
  EXPECT_EQ(to_string(session.run("SMEMBERS s")), "[\"m\"]");
  EXPECT_EQ(to_string(session.run("ZPOPMIN z 1")), "[\"m\", \"1.5\"]");
}

}  // namespace
}  // namespace sluice::engine
