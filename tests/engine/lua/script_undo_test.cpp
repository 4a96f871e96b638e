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

INSTANTIATE_TEST_SUITE_P(Seeds, ScriptUndo, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace sluice::engine
