/// The simulation over thousands of seeds, and the test of the test: every bug that is put in on
/// purpose is found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "lock/simulation/campaign.hpp"
#include "lock/simulation/mutation.hpp"
#include "lock/simulation/primitive.hpp"
#include "support/sanitized.hpp"

namespace sluice::simulation {
namespace {

// A sanitizer makes a seed fifty times as long; what it finds it finds in any. The plain tree plays
// the same seeds, and all the others.
constexpr std::uint64_t seeds_a_case = test::is_sanitized ? 3 : 48;  // of some 140 cases
constexpr std::string_view hot_process = "strangers";  // long to play: it has fewer, below
constexpr std::uint64_t seeds_for_a_mutation = 1000;   // it is found long before

struct Case {
  std::string_view profile;
  std::string_view primitive;
};

std::string name_of(const Case& one) { return fmt::format("{}_{}", one.profile, one.primitive); }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& trouble : all_troubles())
    for (const auto& primitive : all_primitives())
      if (trouble.plays(primitive.name) && trouble.name != hot_process)
        all.push_back({trouble.name, primitive.name});
  return all;
}

class Simulation : public testing::TestWithParam<Case> {};

TEST_P(Simulation, FindsNothing) {
  const auto& one = GetParam();
  const auto found =
      first_failure({.primitive = std::string{one.primitive}, .profile = std::string{one.profile}},
                    {.first = 0, .last = seeds_a_case - 1});
  EXPECT_FALSE(found) << found->text;
}

INSTANTIATE_TEST_SUITE_P(Seeds, Simulation, testing::ValuesIn(cases()),
                         [](const auto& test) { return name_of(test.param); });

class Strangers : public testing::TestWithParam<const char*> {};

TEST_P(Strangers, K31_HaveTheirShareBesideOneHotProcess) {
  const Seeds seeds{.first = 0, .last = test::is_sanitized ? 1 : 7};
  const auto found =
      first_failure({.primitive = GetParam(), .profile = std::string{hot_process}}, seeds);
  EXPECT_FALSE(found) << found->text;
}

INSTANTIATE_TEST_SUITE_P(Of, Strangers,
                         testing::Values("mutex", "multi", "shared", "semaphore", "permit"),
                         [](const auto& test) { return std::string{test.param}; });

/// What was found in longer campaigns, and mended.
TEST(Seed, WhatWasFoundBefore) {
  struct Found {
    const char* primitive;
    std::uint64_t seed;
    const char* what;
    const char* profile = "usual";
  };
  constexpr Found found_before[] = {
      {"mutex", 34093, "a late copy of a pass ends the turn after it"},
      {"mutex", 57203, "the same"},
      {"fair", 18215, "the process that is to look stands still too"},
      {"fair", 138994, "the same"},
      {"shared", 4117, "the same"},
      {"shared", 346, "a hold after a lost one has its token"},
      {"mutex", 66658, "a grant that the server has forgotten counts"},
      {"mutex", 3042861, "who has looked too early is not told again"},
      {"fair", 3007447, "a place that could not be given up gets the lock"},
      {"shared", 3048091, "who knows that a hold ends sooner leaves, and tells nobody"},
      {"fair", 18, "a process with a short lease loses its places before it can look", "stopped"},
      {"fair", 19, "the same", "bystander"},
      {"multi", 346, "the same", "stopped"},
      {"fair", 2, "tickets stay for ten minutes", "snapshot"},
      {"fair", 41, "the same", "promotion"},
      {"mutex", 5112, "the end of a grant comes when its question was asked again", "durable"},
      {"multi", 166, "a name is ended while the grant is on its way: the others end, too",
       "blocked"},
      {"semaphore", 658, "a Java program dies with a permit, which has no lease", "guests"},
      {"fair", 1979, "a renewal within the millisecond that PEXPIRE left", "outside"},
      {"fair", 3273, "the same", "outside"},
      {"shared", 3296, "the same", "outside"},
      {"shared", 3410, "a grant to readers is to be claimed before the writers' turn to look",
       "stopped"},
      {"multi", 2254, "one that waits for all passes on what it was given", "slow"},
      {"multi", 2622, "the same", "slow"},
      {"shared", 6452, "a slow clock makes more of a grant that comes long after the answer",
       "clocks"},
      {"fair", 5472, "too little is left of a grant after a long wait", "stopped"},
      {"permit", 4513, "the same", "stopped"},
      {"shared", 11045, "what is noted of a hold that ended early stays as long as it would have"},
      {"semaphore", 13536, "an answer that came before a process stood still is heard after it",
       "stopped"},
      {"permit", 13536, "the same", "stopped"},
      {"mutex", 30002, "who came while the hold was asked for is not told of its end", "outside"},
      {"multi", 13999, "a late copy of a forced release ends the next hold", "operators"},
      {"shared", 42592, "readers are let in past the first of their process, which has yet to look",
       "stopped"},
      {"shared", 10763, "a wait that came later says less of when the first of its process looks",
       "paused"},
      {"fair", 1240, "looks of others hide that the server did not hear those it sent a grant",
       "paused"},
      {"shared", 15733, "the same", "paused"},
      {"fair", 9524, "a grant ends unheard in a pause, and another gets in before its waiter",
       "paused"},
  };
  for (const auto& [primitive, seed, what, profile] : found_before) {
    const auto found =
        first_failure({.primitive = primitive, .profile = profile}, {.first = seed, .last = seed});
    EXPECT_FALSE(found) << what << '\n' << found->text;
  }
}

/// It ends with the last branch, long before the last of these seeds.
TEST(Branch, EachOfTheScriptsIsRun) {
  if (test::is_sanitized) GTEST_SKIP() << "the plain tree counts them";
  Branches branches;
  run_for_branches(Seeds{.first = 0, .last = 400}, branches);
  for (const auto& [name, count] : branches.counts()) EXPECT_GT(count, 0U) << name;
}

class Mutated : public testing::TestWithParam<std::string_view> {};

TEST_P(Mutated, IsFound) {
  if (test::is_sanitized) GTEST_SKIP() << "the plain tree finds them";
  const Mutation& mutation = mutation_named(GetParam());
  EXPECT_TRUE(first_failure({.primitive = std::string{mutation.primitive},
                             .profile = std::string{mutation.profile},
                             .mutation = std::string{mutation.name}},
                            {.first = 0, .last = seeds_for_a_mutation - 1}))
      << mutation.about;
}

std::vector<std::string_view> mutations_that_heal(bool heal) {
  std::vector<std::string_view> names;
  for (const auto& mutation : all_mutations())
    if (mutation.heals == heal) names.push_back(mutation.name);
  return names;
}

std::string name_of_mutation(const testing::TestParamInfo<std::string_view>& test) {
  std::string name{test.param};
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Mutated, testing::ValuesIn(mutations_that_heal(false)),
                         name_of_mutation);

class Healed : public testing::TestWithParam<std::string_view> {};

/// Messages may be lost, all of them: waiters look by themselves.
TEST_P(Healed, CostsNobodyHisTurn) {
  const Mutation& mutation = mutation_named(GetParam());
  const auto found = first_failure({.primitive = std::string{mutation.primitive},
                                    .profile = std::string{mutation.profile},
                                    .mutation = std::string{mutation.name}},
                                   {.first = 0, .last = test::is_sanitized ? 10 : 100});
  EXPECT_FALSE(found) << found->text;
}

INSTANTIATE_TEST_SUITE_P(All, Healed, testing::ValuesIn(mutations_that_heal(true)),
                         name_of_mutation);

TEST(Seed, PlaysTheSameAgain) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto first = trace_of({}, seed);
    (void)trace_of({}, seed + 1);
    EXPECT_EQ(trace_of({}, seed), first) << "seed " << seed;
  }
}

TEST(Seed, RangesAreRead) {
  EXPECT_EQ(seeds_of("5").last, 5U);
  EXPECT_EQ(seeds_of("2..7").first, 2U);
  EXPECT_EQ(seeds_of("2..7").last, 7U);
  for (const auto* const wrong : {"", "x", "7..2", "1..", "-1"})
    EXPECT_THROW((void)seeds_of(wrong), std::invalid_argument) << wrong;
}

TEST(Seed, AFailureSaysHowToRepeatIt) {
  const auto found = first_failure({.mutation = "acquire-without-look"}, {.first = 0, .last = 999});
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("two exclusive holders"), std::string::npos) << found->text;
  EXPECT_NE(found->text.find("lock_simulation --primitive mutex --seeds " +
                             std::to_string(found->seed) + " --mutation acquire-without-look"),
            std::string::npos)
      << found->text;
}

}  // namespace
}  // namespace sluice::simulation
