// Scripts of random commands that are ended anywhere, also within a command: nothing of them is
// left.
#include <gtest/gtest.h>

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

/// What random commands come to seldom, each alone.
TEST(ScriptUndoSteps, OfGroupsAndOfLargeValues) {
  static constexpr std::string_view changes[] = {
      "XREADGROUP GROUP g ann STREAMS s >",
      "XREADGROUP GROUP g new STREAMS s >",
      "XREADGROUP GROUP g ann STREAMS s 0",
      "XREADGROUP GROUP g ann NOACK STREAMS s >",
      "XACK s g 1-1 2-1",
      "XCLAIM s g bob 0 1-1",
      "XCLAIM s g ann 0 1-1 2-1",
      "XCLAIM s g new 0 4-1 FORCE",
      "XAUTOCLAIM s g bob 0 0",
      "XGROUP DELCONSUMER s g ann",
      "XGROUP DELCONSUMER s g bob",
      "XGROUP CREATECONSUMER s g new",
      "XGROUP SETID s g 4-1",
      "XGROUP DESTROY s g",
      "XGROUP CREATE s other 0",
      "XDEL s 1-1 3-1",
      "XTRIM s MAXLEN 1",
      "XADD s 9-1 f e",
      "XSETID s 9-9",
      "DEL s",
      "SREM set m1 m599 m300",
      "SADD set another",
      "SPOP set 100",
      "HDEL hash m1 m599 m300",
      "HSET hash m2 other another v",
      "ZREM zset m1 m599 m300",
      "ZADD zset 5 m2 7 another",
      "ZREMRANGEBYRANK zset 3 500",
  };
  for (const auto change : changes) {
    SCOPED_TRACE(change);
    EngineSession session;
    for (const auto* const line :
         {"XADD s 1-1 f a", "XADD s 2-1 f b", "XADD s 3-1 f c", "XADD s 4-1 f d",
          "XGROUP CREATE s g 0", "XREADGROUP GROUP g ann COUNT 2 STREAMS s >",
          "XGROUP CREATECONSUMER s g bob"})
      session.run(line);
    for (int i = 0; i < 600; ++i) {
      const auto member = "m" + std::to_string(i);
      session.run(Line{"SADD", "set", member});
      session.run(Line{"HSET", "hash", member, "v"});
      session.run(Line{"ZADD", "zset", std::to_string(i), member});
    }
    session.now_us += 5'000;
    const auto before = state_of(session);

    const auto command = words_of(change);
    Line script{"EVAL", std::string{all_then_for_ever}, "0", std::to_string(command.size())};
    script.insert(script.end(), command.begin(), command.end());
    session.engine.scripts().set_limits({.steps = 100'000});
    EXPECT_TRUE(session.run(script).is_error());
    EXPECT_EQ(state_of(session), before);
    EXPECT_FALSE(session.run(command).is_error());
    EXPECT_NE(state_of(session), before) << "it changes something";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScriptUndo, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace sluice::engine
