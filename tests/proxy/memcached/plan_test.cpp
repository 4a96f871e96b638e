#include "proxy/memcached/asking.hpp"

namespace sluice::proxy {
namespace {

TEST(MemcachedPlan, KeysGoToTheirHome) {
  for (const auto* const line :
       {"get k\r\n", "gets k\r\n", "gat 10 k\r\n", "delete k\r\n", "delete k 0 noreply\r\n",
        "incr k 1\r\n", "touch k -1\r\n", "set k 0 -1 3\r\nabc\r\n", "cas k 0 0 3 7\r\nabc\r\n",
        "mg k v\r\n", "md k\r\n", "ma k N0\r\n", "me k\r\n", "ms k 3 T0\r\nabc\r\n", "get k\n"}) {
    const auto asked = ask(line);
    ASSERT_EQ(asked.state, RequestReader::State::complete) << line;
    EXPECT_EQ(asked.size(), std::string_view{line}.size());
    EXPECT_EQ(asked.plan.route, Route::one) << line;
    EXPECT_EQ(asked.keys(), WordList{"k"}) << line;
  }
}

TEST(MemcachedPlan, ManyKeysAreCutUp) {
  auto asked = ask("gats 10 a b c\r\n");
  EXPECT_EQ(asked.plan.route, Route::homes);
  EXPECT_EQ(asked.keys(), (WordList{"a", "b", "c"}));
  std::string wire;
  asked.protocol().append_fragment(wire, asked.words(), asked.plan,
                                   std::vector<std::uint32_t>{0, 2});
  EXPECT_EQ(wire, "gats 10 a c\r\n");
  EXPECT_FALSE(asked.plan.read_only);
  EXPECT_TRUE(ask("get a b\r\n").plan.read_only);
}

TEST(MemcachedPlan, NoreplyExpectsNone) {
  for (const auto* const line :
       {"set k 0 0 1 noreply\r\nx\r\n", "cas k 0 0 1 2 noreply\r\nx\r\n", "delete k noreply\r\n",
        "incr k 1 noreply\r\n", "touch k 1 noreply\r\n"})
    EXPECT_FALSE(ask(line).plan.expects_reply) << line;
  EXPECT_TRUE(ask("delete noreply\r\n").plan.expects_reply);
  EXPECT_TRUE(ask("get noreply\r\n").plan.expects_reply);
  EXPECT_TRUE(ask("set k 0 0 7\r\nnoreply\r\n").plan.expects_reply);
  EXPECT_EQ(ask("flush_all noreply\r\n").plan.reply, "");
}

TEST(MemcachedPlan, QuietFlagsAreKeptHere) {
  auto get = ask("mg k v q O1\r\n");
  EXPECT_EQ(get.plan.forward, "mg k v O1\r\n");
  EXPECT_EQ(get.plan.quiet, Quiet::miss);
  EXPECT_TRUE(get.protocol().is_silent(get.plan.quiet, "EN O1\r\n"));
  EXPECT_FALSE(get.protocol().is_silent(get.plan.quiet, "HD O1\r\n"));
  auto set = ask("ms k 3 q k\r\nq q\r\n");
  EXPECT_EQ(set.plan.forward, "ms k 3 k\r\nq q\r\n");
  EXPECT_TRUE(set.protocol().is_silent(set.plan.quiet, "HD kk\r\n"));
  EXPECT_FALSE(set.protocol().is_silent(set.plan.quiet, "NS\r\n"));
  EXPECT_EQ(ask("md quit q\r\n").plan.forward, "md quit\r\n");
  EXPECT_EQ(ask("mg q v\r\n").plan.forward, "");
  EXPECT_EQ(ask("mg q v\r\n").plan.quiet, Quiet::no);
  EXPECT_EQ(ask("mn\r\n").plan.reply, "MN\r\n");
}

TEST(MemcachedPlan, KeysInBase64RouteByTheirBytes) {
  EXPECT_EQ(ask("mg Zm9v b v\r\n").plan.routing_key, "foo");
  EXPECT_EQ(ask("ms Zm8= 1 b\r\nx\r\n").plan.routing_key, "fo");
  EXPECT_EQ(ask("mg AP8= b\r\n").plan.routing_key, std::string_view("\x00\xff", 2));
  EXPECT_EQ(ask("mg Zm9v v\r\n").plan.routing_key, "");
  for (const auto* const line :
       {"mg k b\r\n", "mg Zm9 b\r\n", "mg Z=== b\r\n", "mg Zm9! b\r\n", "mg Zm9= b\r\n"})
    EXPECT_EQ(ask(line).plan.reply, "CLIENT_ERROR error decoding key\r\n") << line;
}

TEST(MemcachedPlan, RefusesWithTheReason) {
  const std::pair<std::string, std::string> rows[] = {
      {"foo\r\n", "ERROR\r\n"},
      {"GET k\r\n", "ERROR\r\n"},
      {"\r\n", "ERROR\r\n"},
      {"get\r\n", "ERROR\r\n"},
      {"incr k\r\n", "ERROR\r\n"},
      {"get " + std::string(251, 'k') + "\r\n", "CLIENT_ERROR a key is longer than 250 bytes\r\n"},
      {"get a b\x01\r\n", "CLIENT_ERROR the line has a control character\r\n"},
      {"touch k 1 noreply\x01\r\n", "CLIENT_ERROR the line has a control character\r\n"},
      {"incr k noreply\r\n", "CLIENT_ERROR noreply stands in the place of another word\r\n"},
      {"mg k 1 2 3 4 5 6 7 8 9 a b c d e f g h i\r\n", "CLIENT_ERROR options flags too long\r\n"},
      {"stats sizes_enable\r\n", "CLIENT_ERROR its reply has no end: ask the server itself\r\n"},
      {"stats\r\n",
       "SERVER_ERROR 'stats' is not served here: name it in the setting `allow` of pool "
       "'alpha'\r\n"},
      {"watch\r\n", "SERVER_ERROR 'watch' cannot be served by a proxy: ask the server itself\r\n"},
  };
  for (const auto& [bytes, reply] : rows) {
    const auto asked = ask(bytes);
    EXPECT_EQ(asked.state, RequestReader::State::complete) << bytes;
    EXPECT_EQ(asked.plan.route, Route::refused) << bytes;
    EXPECT_EQ(asked.plan.reply, reply) << bytes;
  }
}

TEST(MemcachedPlan, ALineThatStoresIsRefusedAtOnceAndTheLast) {
  const std::string wrong = "CLIENT_ERROR bad command line format\r\n";
  const std::pair<std::string, std::string> rows[] = {
      {"set k 0 0 1 noreply more\r\n", "ERROR\r\n"},
      {"set k 0 0\r\n", "ERROR\r\n"},
      {"set k 0 0 x\r\n", wrong},
      {"set k 0 0 -1\r\n", wrong},
      {"set k 0 0 2147483646\r\n", wrong},
      {"set k 0 0 noreply\r\n", "CLIENT_ERROR noreply stands in the place of another word\r\n"},
      {"set k -1 0 1\r\n", wrong},
      {"set k 18446744073709551616 0 1\r\n", wrong},
      {"cas k 0 0 1 x\r\n", wrong},
      {"ms k x\r\n", wrong},
      {"ms k\r\n", "ERROR\r\n"},
      {"set k\x01 0 0 1\r\n", "CLIENT_ERROR the line has a control character\r\n"},
      {"ms " + std::string(251, 'k') + " 1\r\n", "CLIENT_ERROR a key is longer than 250 bytes\r\n"},
      {"ms k 9 1 2 3 4 5 6 7 8 9 a b c d e f g h\r\n", "CLIENT_ERROR options flags too long\r\n"},
  };
  for (const auto& [bytes, reply] : rows) {
    const auto asked = ask(bytes);
    EXPECT_EQ(asked.state, RequestReader::State::bad) << bytes;
    EXPECT_EQ(asked.error_reply(), reply) << bytes;
  }
}

TEST(MemcachedPlan, ServersGetOneFormOfALine) {
  const std::pair<std::string, std::string> rows[] = {
      {"get k\r\n", "get k\r\n"},
      {"get k\n", "get k\r\n"},
      {"  get  k \r\n", "get k\r\n"},
      {"set k 0 0 1 \n1\r\n", "set k 0 0 1\r\n1\r\n"},
      {"set k 0 0 3\r\na\nb\r\n", "set k 0 0 3\r\na\nb\r\n"},
      {"set k 4294967297 4294967298 1\r\n1\r\n", "set k 1 2 1\r\n1\r\n"},
  };
  for (const auto& [bytes, wire] : rows) EXPECT_EQ(ask(bytes).wire(), wire) << bytes;
}

TEST(MemcachedPlan, ServesAllServersWhenAllowed) {
  auto settings = memcached_settings();
  settings.allow = {"stats", "flush_all"};
  EXPECT_EQ(Asked(settings, "flush_all 10 noreply\r\n").plan.route, Route::every);
  const auto silent = Asked(settings, "flush_all 10 noreply\r\n").plan;
  EXPECT_TRUE(silent.expects_reply);
  EXPECT_EQ(silent.quiet, Quiet::all);
  EXPECT_EQ(Asked(settings, "flush_all 10 noreply\r\n").plan.route, Route::every);
  EXPECT_EQ(Asked(settings, "stats items\r\n").plan.merge, Merge::concatenate);
  EXPECT_EQ(Asked(settings, "verbosity 1\r\n").plan.route, Route::refused);
}

TEST(MemcachedPlan, TheRest) {
  EXPECT_EQ(ask("version\r\n").plan.route, Route::any);
  EXPECT_EQ(ask("quit\r\n").plan.route, Route::close);
  EXPECT_FALSE(ask("quit\r\n").plan.drop_pending);
  std::string text;
  auto asked = ask("get k\r\n");
  asked.protocol().append_failure(text, Failure::timed_out);
  EXPECT_EQ(text, "SERVER_ERROR Connection timed out\r\n");
  EXPECT_EQ(asked.protocol().command_name(asked.plan.command), "get");
  EXPECT_EQ(asked.protocol().command_name(ask("nosuch\r\n").plan.command), "unknown");
}

}  // namespace
}  // namespace sluice::proxy
