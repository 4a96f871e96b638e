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

INSTANTIATE_TEST_SUITE_P(Seeds, ScriptUndo, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace sluice::engine
