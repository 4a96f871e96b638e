/// The simulation over ten thousand seeds, and the test of the test: every bug that is put in on
/// purpose is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "lock/simulation/campaign.hpp"
#include "lock/simulation/mutation.hpp"
#include "support/sanitized.hpp"

namespace sluice::simulation {
namespace {

// A sanitizer makes a seed fifty times as long; what it finds it finds in any.
constexpr std::uint64_t seeds_a_case = test::is_sanitized ? 30 : 1000;
constexpr std::uint64_t seeds_for_a_mutation = 1000;  // it is found long before
constexpr std::uint64_t cases = 2;                    // of each primitive: ten thousand seeds

class Simulation : public testing::TestWithParam<std::tuple<const char*, std::uint64_t>> {};

TEST_P(Simulation, FindsNothing) {
  const auto& [primitive, part] = GetParam();
  const Seeds seeds{.first = part * seeds_a_case, .last = (part + 1) * seeds_a_case - 1};
  const auto found = first_failure({.primitive = primitive}, seeds);
  EXPECT_FALSE(found) << found->text;
}

INSTANTIATE_TEST_SUITE_P(Seeds, Simulation,
                         testing::Combine(testing::Values("mutex", "fair", "shared", "semaphore",
                                                          "permit"),
                                          testing::Range(std::uint64_t{0}, cases)),
                         [](const auto& test) {
                           return std::string{std::get<0>(test.param)} +
                                  std::to_string(std::get<1>(test.param));
                         });

/// What was found in longer campaigns, and mended.
TEST(Seed, WhatWasFoundBefore) {
  struct Found {
    const char* primitive;
    std::uint64_t seed;
    const char* what;
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
  };
  for (const auto& [primitive, seed, what] : found_before) {
    const auto found = first_failure({.primitive = primitive}, {.first = seed, .last = seed});
    EXPECT_FALSE(found) << what << '\n' << found->text;
  }
}

class Mutated : public testing::TestWithParam<std::string_view> {};

TEST_P(Mutated, IsFound) {
  const Mutation& mutation = mutation_named(GetParam());
  EXPECT_TRUE(first_failure(
      {.primitive = std::string{mutation.primitive}, .mutation = std::string{mutation.name}},
      {.first = 0, .last = seeds_for_a_mutation - 1}))
      << mutation.about;
}

std::vector<std::string_view> names_of_mutations() {
  std::vector<std::string_view> names;
  for (const auto& mutation : all_mutations()) names.push_back(mutation.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Mutated, testing::ValuesIn(names_of_mutations()),
                         [](const auto& test) {
                           std::string name{test.param};
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

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
