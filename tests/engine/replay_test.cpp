// What the engine logs, replayed into another engine, gives the same data: the promise of the
// append-only file.
#include <gtest/gtest.h>

#include "engine/differential/grammar.hpp"
#include "engine/differential/templates.hpp"
#include "engine/engine_session.hpp"

namespace sluice::engine {
namespace {

class Replay : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Replay, TheLogGivesTheSameData) {
  EngineSession original{3, GetParam()};
  EngineSession copy{3, GetParam() + 1000};  // other rng: what chance decided must stand in the log
  test::Grammar commands{GetParam(), test::command_templates, test::Grammar::Keys::mixed};
  for (int times = 0; times < 3; ++times) commands.add(test::chance_templates);
  commands.add(test::large_templates);
  for (int i = 0; i < 5000; ++i) {
    original.run(commands.next());
    original.now_us += 7'000;
    copy.now_us = original.now_us;
    copy.engine.loading = true;
    for (const auto& effect : original.effects) {
      const auto reply = copy.run(effect);
      ASSERT_FALSE(reply.is_error()) << text_of(effect) << ": " << to_string(reply);
    }
    copy.engine.loading = false;
  }
  EXPECT_EQ(dump(copy), dump(original)) << "seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replay, testing::Range<std::uint64_t>(1, 13));

TEST(Replay, ALogThatIsLoadedKeepsKeysUntilTheirDel) {
  EngineSession session;
  session.engine.loading = true;
  EXPECT_EQ(to_string(session.run("SET k v PXAT 1000")), "OK");
  EXPECT_EQ(to_string(session.run("APPEND k w")), "(integer) 2");
  EXPECT_TRUE(session.effects.empty());
  session.engine.loading = false;
  EXPECT_EQ(to_string(session.run("GET k")), "(nil)");
  EXPECT_EQ(session.effects_text(), "DEL k");
}

}  // namespace
}  // namespace sluice::engine
