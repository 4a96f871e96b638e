#include <gtest/gtest.h>

#include "proxy/support/planning.hpp"

namespace sluice::proxy {
namespace {

using Keys = std::vector<std::size_t>;

struct RedisPlan : testing::Test {
  Planned of(std::string_view line) { return planned(*protocol, line); }
  std::unique_ptr<Protocol> protocol = make_redis_protocol(redis_settings());
};

struct Row {
  const char* line;
  Route route;
  Keys keys;
};

TEST_F(RedisPlan, KeysGoToTheirHome) {
  const Row rows[] = {
      {"GET a", Route::one, {1}},
      {"set a b EX 10", Route::one, {1}},
      {"RENAME a b", Route::one, {1, 2}},
      {"MSETNX a 1 b 2", Route::one, {1, 3}},
      {"BITOP AND d a b", Route::one, {2, 3, 4}},
      {"ZUNIONSTORE d 2 a b WEIGHTS 1 2", Route::one, {1, 3, 4}},
      {"EVAL code 2 a b c", Route::one, {3, 4}},
      {"FCALL f 1 a", Route::one, {3}},
      {"XADD s * f v", Route::one, {1}},
      {"XREAD COUNT 1 STREAMS a b 0 0", Route::one, {4, 5}},
      {"XREADGROUP GROUP g c STREAMS a >", Route::one, {5}},
      {"PUBLISH channel hello", Route::one, {1}},
      {"SPUBLISH channel hello", Route::one, {1}},
      {"OBJECT ENCODING a", Route::one, {2}},
      {"MEMORY USAGE a", Route::one, {2}},
      {"HEXPIRETIME a", Route::refused, {}},
      {"HEXPIRE a 10 FIELDS 1 f", Route::one, {1}},
      {"MSETEX 2 a 1 b 2 EX 10", Route::one, {2, 4}},
      {"VADD a VALUES 1 0.5 e", Route::one, {1}},
      {"XREADGROUP GROUP block 5 STREAMS a >", Route::one, {5}},
      {"XREADGROUP COUNT 1 GROUP block streams STREAMS a >", Route::one, {7}},
  };
  for (const auto& row : rows) {
    const auto plan = of(row.line);
    EXPECT_EQ(plan.plan.route, row.route) << row.line;
    EXPECT_EQ(plan.keys, row.keys) << row.line;
  }
}

TEST_F(RedisPlan, ManyKeysAreCutUpAndOneIsNot) {
  const auto many = of("MGET a b a");
  EXPECT_EQ(many.plan.route, Route::homes);
  EXPECT_EQ(many.plan.merge, Merge::by_key);
  EXPECT_EQ(many.keys, (Keys{1, 2, 3}));
  EXPECT_EQ(of("MGET a").plan.route, Route::one);
  EXPECT_EQ(of("MSET a 1 b 2").keys, (Keys{1, 3}));
  EXPECT_EQ(of("MSET a 1 b 2").plan.words_per_key, 2);
  EXPECT_EQ(of("EXISTS a b").plan.merge, Merge::sum);
  EXPECT_EQ(of("PUBSUB NUMSUB a b").keys, (Keys{2, 3}));
  EXPECT_EQ(of("PUBSUB NUMSUB").plan.route, Route::any);
}

TEST_F(RedisPlan, X07_OptionsStandWhereTheGrammarHasThem) {
  for (const auto* const line :
       {"XREADGROUP GROUP streams c BLOCK 0 STREAMS a >",
        "XREADGROUP BLOCK 0 GROUP g c STREAMS a >",
        "XREADGROUP GROUP g streams NOACK BLOCK 0 STREAMS a >",
        "XREADGROUP GROUP g c CLAIM 5 COUNT 1 BLOCK 0 STREAMS a >",
        "XREAD COUNT 1 BLOCK 0 STREAMS a 0", "XREAD BLOCK 1 BLOCK 0 STREAMS a 0"})
    EXPECT_EQ(of(line).plan.verb, SessionVerb::blocking) << line;
  for (const auto* const line : {"XREAD STREAMS block 0", "XREAD COUNT 1 STREAMS block block 0 0",
                                 "XREADGROUP GROUP block block NOACK STREAMS a >"})
    EXPECT_EQ(of(line).plan.route, Route::one) << line;
}

TEST_F(RedisPlan, X19_KnowsTheModulesOfRedis8) {
  const Row rows[] = {
      {"JSON.GET a $", Route::one, {1}},
      {"json.mget a b $", Route::one, {1, 2}},
      {"JSON.MSET a $ 1 b $ 2", Route::one, {1, 4}},
      {"JSON.NEWER a", Route::one, {1}},
      {"BF.ADD a x", Route::one, {1}},
      {"CMS.MERGE a 2 b c WEIGHTS 1 2", Route::one, {1, 3, 4}},
      {"TOPK.ADD a x", Route::one, {1}},
      {"TS.CREATERULE a b AGGREGATION sum 1", Route::one, {1, 2}},
      {"FT.SUGADD a x 1", Route::one, {1}},
      {"FT.SEARCH idx *", Route::any, {}},
  };
  for (const auto& row : rows) {
    const auto plan = of(row.line);
    EXPECT_EQ(plan.plan.route, row.route) << row.line;
    EXPECT_EQ(plan.keys, row.keys) << row.line;
  }
  EXPECT_TRUE(of("JSON.GET a").plan.read_only);
  EXPECT_FALSE(of("JSON.SET a $ 1").plan.read_only);
  EXPECT_EQ(protocol->command_name(of("Json.Get a").plan.command), "json.get");
  EXPECT_EQ(of("JSON.GET").reply, "-ERR wrong number of arguments for 'json.get' command\r\n");
  auto settings = redis_settings();
  settings.servers.resize(2);
  protocol = make_redis_protocol(settings);
  EXPECT_EQ(of("FT.SEARCH idx *").reply,
            "-ERR 'ft.search' looks at all keys of a server: it is served where a pool has one "
            "server\r\n");
  EXPECT_EQ(of("FT.SUGGET a x").plan.route, Route::one);
}

TEST(RedisPlanTaught, X19_ASettingTeachesCommands) {
  auto settings = redis_settings();
  settings.commands = {{"my.wait", "keys 1 -2 1 blocking"},
                       {"my.both", "key 1 count 2"},
                       {"my.get", "key 2 read"},
                       {"my.any", "none"},
                       {"my.import", "behind keys"},
                       {"my.*", "keys 1 -1 2"},
                       {"shutdown", "key 1"},
                       {"json.*", "key 2"}};
  const auto protocol = make_redis_protocol(settings);
  const auto of = [&](std::string_view line) { return planned(*protocol, line); };
  EXPECT_EQ(of("MY.WAIT a b 0").plan.verb, SessionVerb::blocking);
  EXPECT_EQ(of("MY.WAIT a b 0").keys, (Keys{1, 2}));
  EXPECT_EQ(of("my.both d 2 a b x").keys, (Keys{1, 3, 4}));
  EXPECT_EQ(of("my.both d 3 a b").plan.route, Route::refused);
  EXPECT_EQ(of("my.get x a").keys, Keys{2});
  EXPECT_TRUE(of("my.get x a").plan.read_only);
  EXPECT_EQ(of("my.any x").plan.route, Route::any);
  EXPECT_EQ(of("my.import x KEYS a b").keys, (Keys{3, 4}));
  EXPECT_EQ(of("my.import x").plan.route, Route::refused);
  EXPECT_EQ(of("MY.ELSE a 1 b 2").keys, (Keys{1, 3}));
  EXPECT_EQ(of("SHUTDOWN a").plan.route, Route::refused);
  EXPECT_EQ(of("JSON.GET x a").keys, Keys{2});
}

TEST_F(RedisPlan, TellsReadsFromWrites) {
  EXPECT_TRUE(of("GET a").plan.read_only);
  EXPECT_TRUE(of("MGET a b").plan.read_only);
  EXPECT_FALSE(of("SET a b").plan.read_only);
  EXPECT_FALSE(of("EVAL x 1 a").plan.read_only);
  EXPECT_TRUE(of("EVAL_RO x 1 a").plan.read_only);
}

TEST_F(RedisPlan, AnswersHereWhatNeedsNoServer) {
  EXPECT_EQ(of("PING").reply, "+PONG\r\n");
  EXPECT_EQ(of("ping hello").reply, "$5\r\nhello\r\n");
  EXPECT_EQ(of("PING a b").reply, "-ERR wrong number of arguments for 'ping' command\r\n");
  EXPECT_EQ(of("ECHO x").reply, "$1\r\nx\r\n");
  const auto quit = of("QUIT");
  EXPECT_EQ(quit.plan.route, Route::close);
  EXPECT_EQ(quit.reply, "+OK\r\n");
  EXPECT_FALSE(quit.plan.drop_pending);
}

TEST_F(RedisPlan, AnyServerAnswersWhatAllKnow) {
  for (const auto* const line : {"COMMAND", "COMMAND DOCS get", "LOLWUT", "TIME", "INFO",
                                 "EVAL x 0", "FCALL f 0 a", "XINFO HELP"})
    EXPECT_EQ(of(line).plan.route, Route::any) << line;
}

TEST_F(RedisPlan, AllServersAnswerWhatIsSpread) {
  EXPECT_EQ(of("DBSIZE").plan.route, Route::every);
  EXPECT_EQ(of("DBSIZE").plan.merge, Merge::sum);
  EXPECT_EQ(of("KEYS *").plan.merge, Merge::concatenate);
  EXPECT_EQ(of("SCRIPT EXISTS a b").plan.merge, Merge::all_elements);
}

TEST_F(RedisPlan, KnowsWhatIsOfTheConnection) {
  const std::pair<const char*, SessionVerb> rows[] = {
      {"AUTH user password", SessionVerb::auth},
      {"HELLO 3", SessionVerb::hello},
      {"SELECT 1", SessionVerb::select},
      {"CLIENT SETINFO lib-name x", SessionVerb::client},
      {"RESET", SessionVerb::reset},
      {"MULTI", SessionVerb::multi},
      {"EXEC", SessionVerb::exec},
      {"WATCH a b", SessionVerb::watch},
      {"BLPOP a b 0", SessionVerb::blocking},
      {"XREAD BLOCK 0 STREAMS a $", SessionVerb::blocking},
      {"SUBSCRIBE a b", SessionVerb::subscribe},
      {"SSUBSCRIBE a", SessionVerb::ssubscribe},
      {"EVALSHA sha 1 a", SessionVerb::evalsha},
      {"EVALSHA sha 0", SessionVerb::evalsha},
      {"SCRIPT LOAD code", SessionVerb::script_load},
      {"SCAN 0", SessionVerb::scan},
  };
  for (const auto& [line, verb] : rows) {
    EXPECT_EQ(of(line).plan.route, Route::session) << line;
    EXPECT_EQ(of(line).plan.verb, verb) << line;
  }
  EXPECT_EQ(of("BLPOP a b 0").keys, (Keys{1, 2}));
  EXPECT_EQ(of("SUBSCRIBE a b").keys, (Keys{1, 2}));
  EXPECT_EQ(of("EVALSHA sha 1 a").keys, (Keys{3}));
}

TEST_F(RedisPlan, RefusesWithTheReason) {
  const std::pair<const char*, const char*> rows[] = {
      {"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
      {"MSET a 1 b", "-ERR wrong number of arguments for 'mset' command\r\n"},
      {"MSETNX a 1 b", "-ERR wrong number of arguments for 'msetnx' command\r\n"},
      {"CLIENT", "-ERR wrong number of arguments for 'client' command\r\n"},
      {"XGROUP CREATE a", "-ERR wrong number of arguments for 'xgroup|create' command\r\n"},
      {"FOO a b",
       "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' (name it in the setting "
       "`commands` of pool 'alpha' if the servers know it)\r\n"},
      {"CLIENT NOSUCH a", "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.\r\n"},
      {"FLUSHALL",
       "-ERR 'flushall' is not served here: name it in the setting `allow` of pool 'alpha'\r\n"},
      {"MONITOR", "-ERR 'monitor' cannot be served by a proxy: ask the server itself\r\n"},
      {"CLUSTER SLOTS", "-ERR This instance has cluster support disabled\r\n"},
      {"EVAL x 3 a", "-ERR Number of keys can't be greater than number of args\r\n"},
      {"XREAD STREAMS a b 0",
       "-ERR syntax error: 'xread' does not tell which of its arguments are keys\r\n"},
  };
  for (const auto& [line, reply] : rows) {
    EXPECT_EQ(of(line).plan.route, Route::refused) << line;
    EXPECT_EQ(of(line).reply, reply) << line;
  }
}

TEST_F(RedisPlan, NoLineEndOfAClientGetsIntoAReply) {
  const auto plan = planned(*protocol, WordList{"X\r\n+OK", "a\nb"});
  EXPECT_EQ(plan.reply.find_first_of("\r\n"), plan.reply.size() - 2);
}

TEST(RedisPlanAllowed, ServesWhatIsAllowed) {
  auto settings = redis_settings();
  settings.allow = {"flushall", "config get"};
  const auto protocol = make_redis_protocol(settings);
  EXPECT_EQ(planned(*protocol, "FLUSHALL ASYNC").plan.route, Route::every);
  EXPECT_EQ(planned(*protocol, "FLUSHALL").plan.merge, Merge::all_ok);
  EXPECT_EQ(planned(*protocol, "CONFIG GET maxmemory").plan.route, Route::any);
  EXPECT_EQ(planned(*protocol, "CONFIG SET a b").plan.route, Route::refused);
}

TEST(RedisPlanSort, PatternsThatTellNoHomeAreRefused) {
  auto settings = redis_settings();
  settings.servers.resize(2);
  settings.hash_tag = HashTag{'{', '}'};
  const auto protocol = make_redis_protocol(settings);
  EXPECT_EQ(planned(*protocol, "SORT {a}l BY {a}w_* GET # GET {a}v_*->f LIMIT 0 1 STORE {a}d").keys,
            (Keys{1, 12, 3, 7}));
  EXPECT_EQ(planned(*protocol, "SORT l BY nosort GET #").keys, (Keys{1}));
  EXPECT_EQ(planned(*protocol, "SORT l LIMIT by get").plan.route, Route::one);
  for (const auto* const line : {"SORT l BY w_*", "SORT_RO l GET {*}x", "SORT l GET *"})
    EXPECT_EQ(planned(*protocol, line).plan.route, Route::refused) << line;
  settings.servers.resize(1);
  const auto alone = make_redis_protocol(settings);
  EXPECT_EQ(planned(*alone, "SORT l BY w_*").plan.route, Route::one);
}

TEST_F(RedisPlan, NamesCommandsForStatistics) {
  EXPECT_EQ(protocol->command_name(of("get a").plan.command), "get");
  EXPECT_EQ(protocol->command_name(of("config get a").plan.command), "config|get");
  EXPECT_EQ(protocol->command_name(of("foo").plan.command), "unknown");
  EXPECT_LT(of("foo").plan.command, protocol->command_count());
}

TEST_F(RedisPlan, WritesFragmentsAsTwemproxyDoes) {
  const auto words = words_of("MSET a 1 b 2 c 3");
  const auto plan = protocol->plan(words);
  std::string wire;
  protocol->append_fragment(wire, words, plan, std::vector<std::uint32_t>{0, 2});
  EXPECT_EQ(wire, "*5\r\n$4\r\nmset\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nc\r\n$1\r\n3\r\n");
}

TEST_F(RedisPlan, SaysFailuresInTwemproxysWords) {
  std::string text;
  for (const auto failure : {Failure::refused, Failure::timed_out, Failure::reset,
                             Failure::host_down, Failure::invalid, Failure::closed})
    protocol->append_failure(text, failure);
  EXPECT_EQ(
      text,
      "-ERR Connection refused\r\n-ERR Connection timed out\r\n-ERR Connection reset by peer\r\n"
      "-ERR Host is down\r\n-ERR Invalid argument\r\n-ERR unknown\r\n");
}

TEST_F(RedisPlan, KnowsAServerInTrouble) {
  EXPECT_TRUE(protocol->is_server_trouble("-OOM command not allowed\r\n"));
  EXPECT_TRUE(protocol->is_server_trouble("-BUSY Redis is busy\r\n"));
  EXPECT_TRUE(protocol->is_server_trouble("-LOADING Redis is loading\r\n"));
  EXPECT_FALSE(protocol->is_server_trouble("-BUSYGROUP Consumer Group name already exists\r\n"));
  EXPECT_FALSE(protocol->is_server_trouble("-ERR x\r\n"));
  EXPECT_FALSE(protocol->is_server_trouble("+OOM \r\n"));
}

TEST_F(RedisPlan, U33_InfoIsOfOneServerDbsizeOfAllAndLastsaveNeedsConsent) {
  EXPECT_EQ(of("INFO").plan.route, Route::any);
  EXPECT_EQ(of("DBSIZE").plan.route, Route::every);
  EXPECT_EQ(of("DBSIZE").plan.merge, Merge::sum);
  EXPECT_EQ(of("LASTSAVE").plan.route, Route::refused);
  auto settings = redis_settings();
  settings.allow = {"lastsave"};
  protocol = make_redis_protocol(settings);
  EXPECT_EQ(of("LASTSAVE").plan.route, Route::any);
}

}  // namespace
}  // namespace sluice::proxy
