#include <gtest/gtest.h>

#include "proxy/config/inspect.hpp"
#include "proxy/config/read.hpp"
#include "support/matchers.hpp"

namespace sluice::proxy::config {
namespace {

using testing::HasSubstr;

Config with(const std::string& lines, const std::string& servers) {
  return read("alpha:\n  listen: h:1\n" + lines + "  servers:\n" + servers, "t.yml");
}

const std::string three = "   - h:1:1 one\n   - h:2:1 two\n   - h:3:1 three\n";
const std::string four = three + "   - h:4:1 four\n";

const PoolDiff& only(const ConfigDiff& diff) { return diff.pools.at(0); }

TEST(ConfigDiff, NothingMovesWhenNothingChanges) {
  const auto result = diff(with("", three), with("", three));
  EXPECT_FALSE(only(result).changed());
  EXPECT_EQ(only(result).moved, 0);
  EXPECT_EQ(text_of(result), "alpha: unchanged\n");
}

TEST(ConfigDiff, KetamaMovesAboutTheNewServersShareAndOnlyToIt) {
  const auto result = diff(with("", three), with("", four));
  EXPECT_TRUE(only(result).exact);
  EXPECT_NEAR(only(result).moved, 0.25, 0.05);
  EXPECT_EQ(only(result).flows.size(), 3U);
  for (const auto& flow : only(result).flows) EXPECT_EQ(flow.to, "four");
}

TEST(ConfigDiff, ModulaMovesMost) {
  const auto result =
      diff(with("  distribution: modula\n", three), with("  distribution: modula\n", four));
  EXPECT_TRUE(only(result).exact);
  // Of twelve places one stays with each server: the orders are one two three, and one two four
  // three.
  EXPECT_NEAR(only(result).moved, 9.0 / 12, 0.0001);
}

/// As sampled, so as computed.
TEST(ConfigDiff, ArcsAgreeWithKeys) {
  std::vector<std::string> keys;
  for (int i = 0; i < 100'000; ++i) keys.push_back("some:key:" + std::to_string(i));
  for (const auto* const distribution : {"ketama", "modula"}) {
    const auto lines = "  hash: murmur\n  distribution: " + std::string{distribution} + "\n";
    const auto before = with(lines, three);
    const auto after = with(lines, "   - h:1:5 one\n   - h:3:2 three\n   - h:5:2 five\n");
    const auto computed = diff(before, after);
    const auto counted = diff(before, after, keys);
    EXPECT_TRUE(only(computed).exact);
    EXPECT_NEAR(only(computed).moved, only(counted).moved, 0.01) << distribution;
    ASSERT_EQ(only(computed).flows.size(), only(counted).flows.size());
  }
}

TEST(ConfigDiff, AnotherHashIsEstimated) {
  const auto result = diff(with("", three), with("  hash: md5\n", three));
  EXPECT_FALSE(only(result).exact);
  EXPECT_NEAR(only(result).moved, 2.0 / 3, 0.05);
  EXPECT_THAT(text_of(result), HasSubstr("hash: fnv1a_64 -> md5"));
  EXPECT_THAT(text_of(result), HasSubstr("(estimated on a sample)"));
}

TEST(ConfigDiff, AServerThatKeepsItsNameKeepsItsKeys) {
  const auto result =
      diff(with("", three), with("", "   - g:9:1 one\n   - h:2:1 two\n   - h:3:1 three\n"));
  EXPECT_EQ(only(result).moved, 0);
  ASSERT_EQ(only(result).addresses.size(), 1U);
  EXPECT_THAT(text_of(result), HasSubstr("server one keeps its keys, but moves: h:1 -> g:9"));
}

TEST(ConfigDiff, KeysThatAreUsedTogetherMayPart) {
  const std::string murmur = "  hash: murmur\n", one = "   - h:1:1 one\n";
  const auto before = with(murmur, one), now = with(murmur, three);
  const std::vector<KeyGroup> groups{
      {"cart:1", "stock:1", "cart:2", "stock:2"}, {"order:7", "order:7"}, {"alone"}};
  const auto result = diff(before, now, {}, groups);
  ASSERT_EQ(only(result).parting.size(), 1U);
  const auto& parting = only(result).parting.front();
  EXPECT_EQ(parting.keys, groups.front());
  for (std::size_t at = 0; at < parting.keys.size(); ++at)
    EXPECT_EQ(parting.servers[at], explain(now.pools.at(0), parting.keys[at]).server);
  EXPECT_THAT(text_of(result), HasSubstr("  1 of the groups of keys part: "));
  EXPECT_THAT(text_of(result), HasSubstr("    cart:1 -> " + parting.servers.front() + ", "));
  EXPECT_THAT(json_of(result).text(), HasSubstr(R"("parting":[[{"key":"cart:1","server":)"));

  const auto tag = murmur + "  hash_tag: \"{}\"\n";
  const auto tagged =
      diff(with(tag, one), with(tag, three), {}, std::vector<KeyGroup>{{"{1}cart", "{1}stock"}});
  EXPECT_TRUE(only(tagged).parting.empty());
  EXPECT_TRUE(only(diff(now, with(murmur, four), {}, groups)).parting.empty())
      << "they were not together before";
}

TEST(ConfigDiff, RandomHasNoHomes) {
  const auto result = diff(with("", three), with("  distribution: random\n", three));
  EXPECT_FALSE(only(result).has_homes);
  EXPECT_THAT(text_of(result), HasSubstr("nowhere in particular"));
}

TEST(ConfigDiff, SaysThatASecretChangedAndNotWhatItIs) {
  const std::string redis = "  redis: true\n";
  const auto result = diff(with(redis + "  redis_auth: hunter1\n", three),
                           with(redis + "  redis_auth: hunter2\n", three));
  ASSERT_EQ(only(result).settings.size(), 1U);
  EXPECT_EQ(only(result).settings[0].name, "redis_auth");
  EXPECT_THAT(text_of(result), Not(HasSubstr("hunter")));
}

TEST(ConfigDiff, PoolsComeAndGo) {
  const auto before = read("a:\n  listen: h:1\n  servers:\n" + three, "t.yml");
  const auto after = read("b:\n  listen: h:1\n  servers:\n" + three, "t.yml");
  EXPECT_EQ(text_of(diff(before, after)), "a: gone\nb: new\n");
}

TEST(Explain, SaysHashPointAndServer) {
  const auto config = with("  hash_tag: \"{}\"\n  hash: fnv1a_32\n  distribution: modula\n", three);
  const auto explanation = explain(config.pools[0], "a{foobar}b");
  EXPECT_EQ(explanation.hashed_part, "foobar");
  EXPECT_EQ(explanation.hash, 0xbf9cf968U);
  EXPECT_EQ(explanation.point, 0xbf9cf968U % 3);
  EXPECT_EQ(explanation.server, config.pools[0].servers[0xbf9cf968U % 3].name);
  EXPECT_THAT(text_of(explanation), HasSubstr("hash 0xbf9cf968"));
}

TEST(Explain, TheKetamaPointIsTheFirstThatTheHashDoesNotPass) {
  const auto config = with("", three);
  for (int i = 0; i < 200; ++i) {
    const auto key = "key" + std::to_string(i);
    const auto explanation = explain(config.pools[0], key);
    const auto homes = make_homes(config.pools[0]);
    EXPECT_EQ(explanation.server, config.pools[0].servers[homes.of(key)].name);
    EXPECT_TRUE(explanation.point >= explanation.hash ||
                explanation.point == homes.ring().points().front().value);
  }
}

TEST(Explain, OfRandomThereIsNothingToSay) {
  EXPECT_THAT(text_of(explain(with("  distribution: random\n", three).pools[0], "k")),
              HasSubstr("any server"));
}

TEST(Frictions, U31_EachSettingThatDiffersIsNamed) {
  const auto with_process = [](const std::string& lines) {
    return read("sluice:\n" + lines + "alpha:\n  listen: h:1\n  servers:\n" + three, "t.yml");
  };
  const auto before = with_process("  workers: 1\n");
  const auto after = with_process(
      "  workers: 2\n  slow_log_threshold: 1ms\n  drain_timeout: 5s\n  memory_limit: 32mb\n"
      "  slow_log_entries: 9\n  hot_keys: true\n");
  EXPECT_THAT(setting_changes(before, after),
              testing::ElementsAre("workers: 1 -> 2 (takes a restart or an upgrade)",
                                   "memory_limit: 0 -> 32mb", "drain_timeout: 30s -> 5s",
                                   "slow_log_threshold: 10ms -> 1ms", "slow_log_entries: 128 -> 9",
                                   "hot_keys: false -> true"));
  EXPECT_THAT(setting_changes(with("", three), with("  timeout: 400\n", three)),
              testing::ElementsAre("alpha: timeout: 0 -> 400"));
  EXPECT_THAT(text_of(diff(before, after)), HasSubstr("  memory_limit: 0 -> 32mb\n"));
}

}  // namespace
}  // namespace sluice::proxy::config
