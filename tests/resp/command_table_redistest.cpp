// Our table against the COMMAND and COMMAND GETKEYS of a running redis-server.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>

#include "resp/command_table.hpp"
#include "resp/request_parser.hpp"
#include "resp/told_commands.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::resp {
namespace {

/// A server has these, or is not new enough; those of modules are not looked at.
const std::set<std::string_view> newer_than_7_0{"client|capa",
                                                "client|import-source",
                                                "client|no-touch",
                                                "client|setinfo",
                                                "cluster|myshardid",
                                                "cluster|slot-stats",
                                                "commandlog",
                                                "commandlog|get",
                                                "commandlog|help",
                                                "commandlog|len",
                                                "commandlog|reset",
                                                "delex",
                                                "delifeq",
                                                "digest",
                                                "hexpire",
                                                "hexpireat",
                                                "hexpiretime",
                                                "hgetdel",
                                                "hgetex",
                                                "hpersist",
                                                "hpexpire",
                                                "hpexpireat",
                                                "hpexpiretime",
                                                "hpttl",
                                                "hsetex",
                                                "httl",
                                                "msetex",
                                                "script|show",
                                                "vadd",
                                                "vcard",
                                                "vdim",
                                                "vemb",
                                                "vgetattr",
                                                "vinfo",
                                                "vismember",
                                                "vlinks",
                                                "vrandmember",
                                                "vrange",
                                                "vrem",
                                                "vsetattr",
                                                "vsim",
                                                "waitaof",
                                                "xackdel",
                                                "xcfgset",
                                                "xdelex"};
constexpr std::array<std::pair<std::string_view, CommandFlag>, 20> flag_names{{
    {"write", flag_write},
    {"readonly", flag_readonly},
    {"denyoom", flag_denyoom},
    {"admin", flag_admin},
    {"pubsub", flag_pubsub},
    {"noscript", flag_noscript},
    {"blocking", flag_blocking},
    {"loading", flag_loading},
    {"stale", flag_stale},
    {"fast", flag_fast},
    {"no_auth", flag_no_auth},
    {"movablekeys", flag_movablekeys},
    {"no_multi", flag_no_multi},
    {"allow_busy", flag_allow_busy},
    {"no_mandatory_keys", flag_no_mandatory_keys},
    {"no_async_loading", flag_no_async_loading},
    {"skip_monitor", flag_skip_monitor},
    {"skip_slowlog", flag_skip_slowlog},
    {"skip_commandlog", flag_skip_slowlog},  // what Valkey calls it
    {"asking", flag_asking},
}};

std::uint32_t flags_of(const Value& entry) {
  std::uint32_t flags = 0;
  for (const auto& flag : entry.as_items().at(2).as_items()) {
    const auto* row =
        std::ranges::find(flag_names, flag.as_text(), [](const auto& r) { return r.first; });
    if (row == flag_names.end())
      ADD_FAILURE() << "a flag that we do not know: " << flag.as_text();
    else
      flags |= row->second;
  }
  return flags;
}

/// What 7.0 tells of commands that take more words by now.
const std::map<std::string_view, int> arities_of_7_0{
    {"command|getkeys", -4}, {"command|getkeysandflags", -4}, {"zrank", 3}, {"zrevrank", 3}};

/// Flags by which Redis 8 or Valkey 8 differs from 7.0.
const std::map<std::string_view, std::uint32_t> flags_that_changed{
    {"blmove", flag_noscript},
    {"blpop", flag_noscript},
    {"brpop", flag_noscript},
    {"brpoplpush", flag_noscript},
    {"bzpopmax", flag_noscript},
    {"bzpopmin", flag_noscript},
    {"cluster|info", flag_loading},
    {"cluster|myid", flag_loading},
    {"cluster|myshardid", flag_loading},
    {"cluster|nodes", flag_loading},
    {"cluster|shards", flag_loading},
    {"cluster|slots", flag_loading},
    {"memory|malloc-stats", flag_loading},
    {"memory|purge", flag_loading},
    {"multi", flag_no_multi},
    {"wait", flag_noscript | flag_blocking},
    {"watch", flag_no_multi},
};

/// What `row` says of the command; else `otherwise`.
template <class Value>
Value told_of(const std::map<std::string_view, Value>& rows, const CommandSpec& spec,
              Value otherwise) {
  const auto row = rows.find(spec.name);
  return row == rows.end() ? otherwise : row->second;
}

TEST(CommandTable, EqualsWhatRedisTells) {
  test::RedisServer server;
  test::PlainClient client{server.port()};
  const auto told = test::told_commands(client);
  const bool is_7_0 = !told.contains("waitaof");
  constexpr std::uint32_t ours = flag_stateful | flag_container;
  for (const auto& spec : all_commands()) {
    const auto row = told.find(std::string{spec.name});
    if (row == told.end()) {
      EXPECT_TRUE(newer_than_7_0.contains(spec.name)) << spec.name;
      continue;
    }
    EXPECT_FALSE(is_7_0 && newer_than_7_0.contains(spec.name)) << spec.name;
    const auto& items = row->second.as_items();
    const auto arity = is_7_0 ? told_of(arities_of_7_0, spec, spec.arity) : spec.arity;
    EXPECT_EQ(items.at(1).as_integer(), arity) << spec.name;
    EXPECT_EQ(items.at(3).as_integer(), spec.first_key) << spec.name;
    EXPECT_EQ(items.at(4).as_integer(), spec.last_key) << spec.name;
    EXPECT_EQ(items.at(5).as_integer(), spec.key_step) << spec.name;
    const auto changed = is_7_0 ? 0 : told_of(flags_that_changed, spec, std::uint32_t{0});
    EXPECT_EQ(flags_of(row->second) & ~changed, spec.flags & ~(ours | changed)) << spec.name;
    EXPECT_EQ(!items.at(9).as_items().empty(), spec.has(flag_container)) << spec.name;
  }
  for (const auto& [name, entry] : told) EXPECT_NE(find_command(name), nullptr) << name;
}

/// Lines whose keys both sides must find alike.
constexpr std::array lines{
    "GET k",
    "MSET a 1 b 2",
    "BLPOP a b 0",
    "XGROUP CREATE s g $",
    "OBJECT ENCODING k",
    "BITOP AND d a b",
    "EVAL x 2 a b c",
    "EVALSHA x 1 a",
    "FCALL_RO f 3 a b c d",
    "XREAD COUNT 1 BLOCK 0 STREAMS a b 0 0",
    "XREADGROUP GROUP streams streams NOACK STREAMS a >",
    "ZUNIONSTORE d 2 a b WEIGHTS 1 2",
    "ZINTERCARD 1 a LIMIT 2",
    "ZDIFF 2 a b WITHSCORES",
    "LMPOP 2 a b LEFT",
    "BLMPOP 0 2 a b LEFT",
    "BZMPOP 0 1 a MIN",
    "SINTERCARD 2 a b",
    "SORT k BY store GET store LIMIT 0 1 STORE d",
    "SORT k STORE d STORE e",
    "SORT_RO k",
    "GEORADIUS g 0 0 1 m STORE a STOREDIST b",
    "GEORADIUSBYMEMBER g m 1 m STORE a",
    "GEOSEARCHSTORE d g FROMLONLAT 0 0 BYRADIUS 1 m",

    "MIGRATE h 1 k 0 1 COPY",
    "MIGRATE h 1 '' 0 1 AUTH2 keys keys KEYS a b",
    "COPY a b",
    "RENAME a b",
    "LCS a b",
    "PFMERGE d a b",
    "XINFO STREAM s FULL",
    "MEMORY USAGE k",
    "ZRANGESTORE d s 0 -1",
};

class KeysOfLine : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { server = std::make_unique<test::RedisServer>(); }
  static void TearDownTestSuite() { server.reset(); }
  static inline std::unique_ptr<test::RedisServer> server;
};

TEST_P(KeysOfLine, AreThoseThatRedisFinds) {
  std::string text;
  std::vector<std::string_view> words;
  ASSERT_TRUE(split_inline(GetParam(), text, words));
  auto question = words;
  question.insert(question.begin(), {"COMMAND", "GETKEYS"});
  const auto answer =
      test::PlainClient{server->port()}.command(std::span<const std::string_view>{question});
  ASSERT_FALSE(answer.is_error()) << to_string(answer);
  std::multiset<std::string> theirs;
  for (const auto& key : answer.as_items()) theirs.insert(key.as_text());
  std::vector<std::size_t> positions;
  const auto* spec = find_command(std::span<const std::string_view>{words});
  ASSERT_NE(spec, nullptr);
  ASSERT_TRUE(keys_of(*spec, words, positions));
  std::multiset<std::string> ours;
  for (const auto at : positions) ours.insert(std::string{words.at(at)});
  EXPECT_EQ(ours, theirs) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Lines, KeysOfLine, testing::ValuesIn(lines), [](const auto& line) {
  const std::string_view text = line.param;
  return std::string{text.substr(0, text.find(' '))} + std::to_string(line.index);
});

}  // namespace
}  // namespace sluice::resp
