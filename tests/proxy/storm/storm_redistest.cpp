/// The storm in short, by seeds that never change; scripts/storm plays it for as long as one likes.
#include <gtest/gtest.h>

#include "proxy/storm/shrink.hpp"
#include "proxy/storm/storm.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {
namespace {

struct Weather {
  std::string language;
  std::uint64_t seed, rounds;
};

class ProxyStormTest : public testing::TestWithParam<Weather> {};

TEST_P(ProxyStormTest, NothingBreaks) {
  const auto& [language, seed, usual] = GetParam();
  std::string told;
  StormOptions options{.language = language, .seed = seed, .rounds = rounds(usual)};
  options.stage.canary.patience = std::chrono::seconds{30};
  Storm storm{options, [&](const std::string& text) { told += text + '\n'; }};
  EXPECT_EQ(storm.run(), 0U) << told;
}

constexpr std::uint64_t many = 3000;
INSTANTIATE_TEST_SUITE_P(Storm, ProxyStormTest,
                         testing::Values(Weather{"memcached", 1, many},
                                         Weather{"memcached", 2, many}, Weather{"redis", 2, many},
                                         Weather{"redis", 3, many}),
                         [](const testing::TestParamInfo<Weather>& one) {
                           return one.param.language + std::to_string(one.param.seed);
                         });

Round alone(std::vector<std::string> requests) { return {Batch{.requests = std::move(requests)}}; }

/// What is wrong is seen: the canaries' own values are taken from them.
TEST(StageTest, ACanaryThatIsToldSomethingElseIsFound) {
  for (const auto* const language : {"memcached", "redis"}) {
    const auto tongue = make_tongue(language);
    Stage stage{*tongue, {}};
    EXPECT_FALSE(stage.play(alone({"get h:1\r\n"}))) << language;
    std::vector<std::string> requests;
    for (int place = 0; place < 8; ++place)
      requests.push_back((language == std::string{"redis"} ? "DEL canary:0:" : "delete canary:0:") +
                         std::to_string(place) + "\r\n");
    std::optional<Finding> found;
    for (int tries = 0; tries < 100 && !found; ++tries) found = stage.play(alone(requests));
    ASSERT_TRUE(found) << language;
    EXPECT_EQ(found->kind, Finding::Kind::canary) << found->text;
  }
}

TEST(StageTest, WhatNobodyMeantAndWhatIsForbiddenIsFound) {
  const auto tongue = make_tongue("redis");
  Stage stage{*tongue, {.settings = {"allow: [config]"}}};
  EXPECT_FALSE(stage.inspect());
  const auto found = stage.play(alone({"CONFIG GET maxmemory\r\n"}));
  ASSERT_TRUE(stage.inspect()) << "MONITOR does not tell of CONFIG, the statistics do";
  EXPECT_EQ(stage.inspect()->text, "a server executed config|get");
}

TEST(ShrinkTest, TheLeastThatFailsIsLeft) {
  const std::vector<Round> rounds{
      {Batch{.requests = {"get a", "set b", "incr noreply now"}, .vanishes = true},
       Batch{.requests = {"version"}}},
      {Batch{.requests = {"quit"}}}};
  const auto fails = [](const std::vector<Round>& tried) {
    for (const auto& round : tried)
      for (const auto& batch : round)
        if (batch.bytes().find("noreply") != std::string::npos) return true;
    return false;
  };
  const auto least = shrink(rounds, fails, 1000);
  ASSERT_EQ(least.size(), 1U);
  EXPECT_EQ(printable(least), "  round 0, client 0\n    \"noreply\"\n");
}

}  // namespace
}  // namespace sluice::test
