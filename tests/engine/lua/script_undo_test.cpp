// Scripts of random commands that are ended anywhere, also within a command: nothing of them is
// left.
#include <gtest/gtest.h>

#include <ranges>

#include "engine/differential/grammar.hpp"
#include "engine/differential/templates.hpp"
#include "engine/engine_session.hpp"
#include "engine/lua/scripts.hpp"
#include "support/sanitized.hpp"

namespace sluice::engine {
namespace {

// ARGV: each command as the number of its words, and its words.
constexpr std::string_view all_then_for_ever =
    "local i = 1 while i <= #ARGV do local n = tonumber(ARGV[i]) "
    "redis.pcall(unpack(ARGV, i + 1, i + n)) i = i + n + 1 end while true do end";

class ScriptUndo : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ScriptUndo, AScriptThatIsEndedLeavesNothing) {
  EngineSession session{3, GetParam()};
  test::Grammar commands{GetParam(), test::command_templates, test::Grammar::Keys::mixed};
  for (int times = 0; times < 3; ++times) commands.add(test::chance_templates);
  for (int times = 0; times < 2; ++times) commands.add(test::large_templates);
  commands.add(test::geo_templates);
  commands.add(test::distinct_templates);
  for (int round = 0; round < test::rounds(200); ++round) {
    for (auto count = commands.below(60); count > 0; --count) {
      session.run(commands.next());
      session.now_us += 3'000;
    }
    session.session.database = 0;
    const auto before = state_of(session);

    Line script{"EVAL", std::string{all_then_for_ever}, "0"};
    for (auto count = 1 + commands.below(20); count > 0; --count) {
      const auto command = commands.next();
      script.push_back(std::to_string(command.size()));
      script.insert(script.end(), command.begin(), command.end());
    }
    constexpr std::uint64_t limits[] = {600, 1000, 2000, 100'000};
    session.engine.scripts().set_limits({.steps = limits[commands.below(std::size(limits))]});
    const auto reply = session.run(script);
    ASSERT_TRUE(reply.is_error()) << to_string(reply);
    ASSERT_NE(reply.as_text().find("nothing that it did is kept"), std::string::npos)
        << reply.as_text();
    EXPECT_EQ(session.effects_text(), "");
    EXPECT_TRUE(session.signalled.empty() && session.published.empty() && session.blocks.empty());
    ASSERT_EQ(state_of(session), before)
        << "seed " << GetParam() << ", round " << round << ": " << text_of(script);
  }
}

// Commands that meet at few elements.

constexpr std::string_view on_strings[] = {
    "SET k <few>",
    "SET k <few> PX 7",
    "APPEND k <few>",
    "SETRANGE k <small> <few>",
    "SETBIT k <bit> 1",
    "INCRBY k <small>",
    "INCRBYFLOAT k 1.5",
    "GETDEL k",
    "BITFIELD k SET u8 <bit> 7",
    "BITOP NOT k k",
    "GETEX k PERSIST",
    "SET k 7",
};
constexpr std::string_view on_hashes[] = {
    "HSET k <few> <few>", "HSET k <few> 1 <few> 2", "HDEL k <few>",     "HDEL k <few> <few>",
    "HINCRBY k a 3",      "HINCRBYFLOAT k b 1.5",   "HSETNX k <few> v",
};
constexpr std::string_view on_lists[] = {
    "RPUSH k <few> <few>",     "LPUSH k <few> <few>",
    "LPOP k <small>",          "RPOP k",
    "LSET k <index> <few>",    "LREM k <index> <few>",
    "LTRIM k <index> <index>", "LINSERT k BEFORE <few> <few>",
    "LMOVE k k LEFT RIGHT",    "LMOVE k j LEFT LEFT",
    "LMOVE j k RIGHT RIGHT",   "SORT k ALPHA STORE k",
};
constexpr std::string_view on_sets[] = {
    "SADD k <few>",     "SADD k <small> <small>", "SREM k <few>",    "SREM k <small> <few>",
    "SPOP k",           "SMOVE k j <few>",        "SMOVE j k <few>", "SUNIONSTORE k k j",
    "SDIFFSTORE j k j",
};
constexpr std::string_view on_sorted_sets[] = {
    "ZADD k <small> <few>",
    "ZADD k <small> <few> <small> <few>",
    "ZINCRBY k 1 <few>",
    "ZREM k <few>",
    "ZREM k <few> <few>",
    "ZREMRANGEBYRANK k 0 <small>",
    "ZPOPMIN k",
    "ZPOPMAX k <small>",
    "ZUNIONSTORE k 2 k j",
    "ZRANGESTORE j k 0 <small>",
};
constexpr std::string_view on_streams[] = {
    "XADD k <oldid> f v",
    "XADD k <oldid> f v",
    "XADD k * f v",
    "XDEL k <oldid>",
    "XDEL k <oldid> <oldid>",
    "XTRIM k MAXLEN <small>",
    "XTRIM k MINID <oldid>",
    "XSETID k 9-9",
    "XGROUP CREATE k g ( 0 | $ | <oldid> ) MKSTREAM",
    "XGROUP SETID k g ( 0 | <oldid> )",
    "XGROUP DESTROY k g",
    "XGROUP CREATECONSUMER k g ( c | d )",
    "XGROUP DELCONSUMER k g ( c | d )",
    "XREADGROUP GROUP g ( c | d ) STREAMS k >",
    "XREADGROUP GROUP g ( c | d ) STREAMS k >",
    "XREADGROUP GROUP g ( c | d ) COUNT 1 STREAMS k >",
    "XREADGROUP GROUP g ( c | d ) STREAMS k 0",
    "XREADGROUP GROUP g ( c | d ) STREAMS k 0",
    "XACK k g <oldid>",
    "XACK k g <oldid> <oldid>",
    "XCLAIM k g ( c | d ) 0 <oldid> [ FORCE ]",
    "XCLAIM k g ( c | d ) 0 <oldid> <oldid> RETRYCOUNT 7",
    "XAUTOCLAIM k g ( c | d ) 0 0",
};
/// Beside those of each type.
constexpr std::string_view on_keys[] = {
    "DEL k",
    "RENAME k j",
    "RENAME j k",
    "COPY k j REPLACE",
    "COPY j k REPLACE",
    "SET k v",
    "EXPIRE k ( 1 | 1000 )",
    "PERSIST k",
    "PEXPIRE j 3",
    "MOVE k 1",
    "SWAPDB 0 1",
    "SELECT ( 0 | 1 )",
    "FLUSHDB",
};

using Lines = std::span<const std::string_view>;
struct OfType {
  const char* type;
  std::string_view first;  ///< lines that make the key
  Lines templates;
};
constexpr OfType types[] = {
    {"Strings", "SET k ab", on_strings},
    {"Hashes", "HSET k a 1 b 2", on_hashes},
    {"Lists", "RPUSH k a b 1 2", on_lists},
    {"Sets", "SADD k 1 2", on_sets},
    {"SortedSets", "ZADD k 1 a 2 b", on_sorted_sets},
    {"Streams",
     "XADD k 1-1 f v; XADD k 1-2 f v; XGROUP CREATE k g 0; XREADGROUP GROUP g c STREAMS k >; "
     "XADD k 2-1 f v",
     on_streams},
};

class ScriptUndoOf : public testing::TestWithParam<OfType> {};

/// Each step must find the element that it takes back, though a later one has removed it and that
/// was taken back before.
TEST_P(ScriptUndoOf, CommandsOnTheSameFewElements) {
  test::Grammar commands{7, GetParam().templates};
  for (int times = 0; times < 7; ++times) commands.add(GetParam().templates);
  commands.add(on_keys);
  EngineSession session;
  session.engine.scripts().set_limits({.steps = 3000});
  for (int round = 0; round < test::rounds(2000); ++round) {
    session.run("FLUSHALL");
    session.session.database = 0;
    std::string story;
    const auto run = [&](const Line& command) {
      story += text_of(command) + "; ";
      session.run(command);
      session.now_us += 3'000;
    };
    if (!commands.one_in(8))
      for (const auto line : std::views::split(GetParam().first, std::string_view{"; "}))
        run(words_of(std::string_view{line}));
    for (auto count = commands.below(4); count > 0; --count) run(commands.next());
    const auto before = state_of(session);
    story += "and in the script:";
    Line script{"EVAL", std::string{all_then_for_ever}, "0"};
    for (auto count = 2 + commands.below(9); count > 0; --count) {
      const auto command = commands.next();
      story += ' ' + text_of(command) + ';';
      script.push_back(std::to_string(command.size()));
      script.insert(script.end(), command.begin(), command.end());
    }
    const auto reply = session.run(script);
    ASSERT_TRUE(reply.is_error() &&
                reply.as_text().find("nothing that it did is kept") != std::string::npos)
        << to_string(reply);
    ASSERT_EQ(state_of(session), before) << "round " << round << ": " << story;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ScriptUndoOf, testing::ValuesIn(types),
                         [](const auto& named) { return named.param.type; });

/// What was undone is as good as what never was: the same commands do the same afterwards.
TEST_P(ScriptUndo, WhatIsUndoneCanBeDoneAgain) {
  EngineSession tried{3, GetParam()};
  EngineSession plain{3, GetParam()};
  tried.engine.scripts().set_limits({.steps = 20'000});
  test::Grammar commands{GetParam() + 100, test::command_templates, test::Grammar::Keys::mixed};
  commands.add(test::large_templates);
  for (int round = 0; round < test::rounds(200); ++round) {
    Line script{"EVAL", std::string{all_then_for_ever}, "0"};
    std::vector<Line> lines;
    for (int i = 0; i < 10; ++i) {
      lines.push_back(commands.next());
      script.push_back(std::to_string(lines.back().size()));
      script.insert(script.end(), lines.back().begin(), lines.back().end());
    }
    tried.run(script);
    for (const auto& line : lines) {
      tried.run(line);
      plain.run(line);
    }
    tried.now_us += 7'000;
    plain.now_us += 7'000;
    ASSERT_EQ(dump(tried), dump(plain)) << "seed " << GetParam() << ", round " << round;
  }
}

/// A value of each shape, small and large; of a stream some entries are pending, one of
/// which is deleted.
void prepare(EngineSession& session) {
  for (const auto* const line :
       {"SADD ints 1 2 3", "SADD few a b c", "HSET small a 1 b 2 c 3", "ZADD zsmall 1 a 2 b 3 c",
        "RPUSH list a b c a d", "SET text hello", "SET number 5 PX 100000", "XADD s 0-5 f z",
        "XADD s 1-1 f a", "XADD s 2-1 f b", "XADD s 3-1 f c", "XADD s 4-1 f d",
        "GEOADD places 13.36 38.11 a", "PFADD few_counted a b c", "PFADD other_counted d e f",
        "XGROUP CREATE s g 0", "XREADGROUP GROUP g ann COUNT 3 STREAMS s >", "XDEL s 0-5",
        "XGROUP CREATECONSUMER s g bob"})
    session.run(line);
  Line set{"SADD", "set"};
  Line hash{"HSET", "hash"};
  Line zset{"ZADD", "zset"};
  for (int i = 0; i < 600; ++i) {
    const auto member = "m" + std::to_string(i);
    set.push_back(member);
    hash.insert(hash.end(), {member, "v"});
    zset.insert(zset.end(), {std::to_string(i), member});
    session.run(Line{"XADD", "long", std::to_string(i + 1) + "-1", "f", "v"});
  }
  Line counted{"PFADD", "counted"};
  for (int i = 0; i < 4000; ++i) counted.push_back("m" + std::to_string(i));
  session.run(counted);
  counted[1] = "nearly_dense";
  counted.resize(1200);
  session.run(counted);
  session.run(set);
  session.run(hash);
  session.run(zset);
  session.now_us += 5'000;
}

const std::string large(100, 'x');
const std::string changes[] = {"SADD ints 4",
                               "SADD ints word",
                               "SADD few d",
                               "SADD few " + large,
                               "SADD set another",
                               "SREM ints 2",
                               "SREM few b",
                               "SREM set m1 m599 m300",
                               "SMOVE few ints a",
                               "SPOP few",
                               "SPOP set 100",
                               "SUNIONSTORE few ints set",
                               "HSET small d 4",
                               "HSET small a 9",
                               "HSET small a " + large,
                               "HSET hash m2 other another v",
                               "HDEL small a",
                               "HDEL hash m1 m599 m300",
                               "HINCRBY small a 5",
                               "HINCRBYFLOAT small a 0.5",
                               "HSETNX small d 1",
                               "ZADD zsmall 5 a",
                               "ZADD zsmall 4 d",
                               "ZADD zsmall 1 " + large,
                               "ZADD zset 5 m2 7 another",
                               "ZREM zsmall a",
                               "ZREM zset m1 m599 m300",
                               "ZINCRBY zsmall 2 a",
                               "ZPOPMIN zsmall",
                               "ZPOPMAX zset 3",
                               "ZREMRANGEBYRANK zsmall 0 0",
                               "ZREMRANGEBYRANK zset 3 500",
                               "ZUNIONSTORE zsmall 1 zset",
                               "LPUSH list x",
                               "RPUSH list x",
                               "LPOP list",
                               "RPOP list 2",
                               "LSET list 1 x",
                               "LINSERT list BEFORE c x",
                               "LINSERT list AFTER c x",
                               "LREM list 0 a",
                               "LTRIM list 1 2",
                               "LMOVE list other LEFT RIGHT",
                               "LMOVE list list LEFT RIGHT",
                               "SORT list ALPHA STORE sorted",
                               "APPEND text x",
                               "SETRANGE text 2 zz",
                               "SETBIT text 3 1",
                               "BITFIELD text SET u8 0 7",
                               "INCR number",
                               "INCRBYFLOAT number 0.5",
                               "SET text other",
                               "SET number 6",
                               "SET list other",
                               "SET new value",
                               "SETEX text 5 x",
                               "GETDEL text",
                               "GETEX text PX 5",
                               "DEL text list",
                               "RENAME text list",
                               "RENAME list new",
                               "MOVE number 1",
                               "COPY zset new",
                               "COPY hash text REPLACE",
                               "PEXPIRE text 90000",
                               "PEXPIRE number 1",
                               "PERSIST number",
                               "FLUSHALL",
                               "FLUSHDB",
                               "SWAPDB 0 1",
                               "XADD s 9-1 f e",
                               "XADD s MAXLEN 1 9-1 f e",
                               "XDEL s 1-1 3-1",
                               "XDEL long 1-1 600-1",
                               "XTRIM s MAXLEN 1",
                               "XTRIM long MAXLEN 5",
                               "XSETID s 9-9",
                               "XGROUP CREATE s other 0",
                               "XGROUP SETID s g 4-1",
                               "XGROUP DESTROY s g",
                               "XGROUP CREATECONSUMER s g new",
                               "XGROUP DELCONSUMER s g ann",
                               "XGROUP DELCONSUMER s g bob",
                               "XREADGROUP GROUP g ann STREAMS s >",
                               "XREADGROUP GROUP g new STREAMS s >",
                               "XREADGROUP GROUP g ann NOACK STREAMS s >",
                               "XREADGROUP GROUP g ann STREAMS s 0",
                               "XACK s g 1-1 2-1",
                               "XCLAIM s g bob 0 1-1",
                               "XCLAIM s g ann 0 1-1 2-1",
                               "XCLAIM s g new 0 4-1 FORCE",
                               "XAUTOCLAIM s g bob 0 0",
                               "XCLAIM s g bob 0 0-5",
                               "XCLAIM s g bob 0 1-1 LASTID 3-1",
                               "LPUSHX list x",
                               "RPUSHX list x",
                               "BITFIELD text SET u8 400 7",
                               "SETBIT text 400 1",
                               "SETRANGE text 50 zz",
                               "ZMPOP 1 zsmall MIN",
                               "BZPOPMIN zsmall 0",
                               "BZPOPMAX zset 0",
                               "BZMPOP 0 1 zsmall MAX",
                               "ZREMRANGEBYSCORE zsmall 1 2",
                               "ZREMRANGEBYSCORE zset 5 50",
                               "ZREMRANGEBYLEX zsmall - +",
                               "LMPOP 1 list LEFT",
                               "BLPOP list 0",
                               "BRPOP list 0",
                               "RPOPLPUSH list other",
                               "DECRBY number 3",
                               "GETSET text x",
                               "HSETNX hash another v",
                               "ZINCRBY zset 2 m5",
                               "SMOVE set few m5",
                               "GEOADD zsmall 13.36 38.11 a",
                               "PFADD new_counted a",
                               "PFADD few_counted d e f g",
                               "PFADD counted x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12 x13",
                               "PFADD nearly_dense x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12 x13",
                               "PFMERGE few_counted other_counted",
                               "PFMERGE few_counted counted",
                               "PFMERGE new_counted counted",
                               "GEOSEARCHSTORE zset places FROMLONLAT 0 0 BYRADIUS 1 m",
                               "GEOSEARCHSTORE number places FROMLONLAT 13 38 BYRADIUS 99 km"};

/// Each alone: random commands come to some of their steps seldom.
TEST(ScriptUndoSteps, EachChangeIsTakenBack) {
  for (const auto& change : changes) {
    SCOPED_TRACE(change);
    EngineSession session;
    prepare(session);
    const auto before = state_of(session);

    const auto command = words_of(change);
    Line script{"EVAL", std::string{all_then_for_ever}, "0", std::to_string(command.size())};
    script.insert(script.end(), command.begin(), command.end());
    session.engine.scripts().set_limits({.steps = 100'000});
    EXPECT_TRUE(session.run(script).is_error());
    EXPECT_EQ(state_of(session), before);
    const auto reply = session.run(command);
    EXPECT_FALSE(reply.is_error()) << to_string(reply);
    EXPECT_NE(state_of(session), before) << "it changes something";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScriptUndo, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace sluice::engine
