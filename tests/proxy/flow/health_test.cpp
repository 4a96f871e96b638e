#include "proxy/health/health.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/paths.hpp"

namespace sluice::proxy {
namespace {

using namespace std::chrono_literals;

const SteadyTime start{std::chrono::hours{1}};
constexpr HealthPolicy checked{.gives_up = true, .failure_limit = 2, .retry = 100ms};
constexpr HealthPolicy unchecked{
    .gives_up = true, .failure_limit = 1, .retry = 100ms, .checked = false};

class HealthTest : public testing::Test {
 protected:
  /// As many failures as it takes, at `start`.
  void eject(Health& health) {
    while (!health.failed(start, start)) {
    }
  }

  HealthVersion version{0};
};

TEST_F(HealthTest, SoManyFailuresInARowEject) {
  Health health{checked, version};
  EXPECT_FALSE(health.failed(start, start));
  EXPECT_TRUE(health.well());
  EXPECT_TRUE(health.failed(start + 1ms, start + 2ms));
  EXPECT_FALSE(health.well());
  EXPECT_EQ(health.retry_at(), start + 102ms);
  EXPECT_EQ(version, 1U);
}

TEST_F(HealthTest, AGoodReplyBeginsTheCountAnew) {
  Health health{checked, version};
  EXPECT_FALSE(health.failed(start, start));
  health.succeeded();
  EXPECT_FALSE(health.failed(start + 1ms, start + 2ms));
  EXPECT_TRUE(health.well());
}

TEST_F(HealthTest, WhatHadBegunBeforeTheLastFailureIsOfTheSameIncident) {
  Health health{checked, version};
  EXPECT_FALSE(health.failed(start, start + 10ms));
  for (int connection = 0; connection < 10; ++connection)
    EXPECT_FALSE(health.failed(start + 5ms, start + 11ms));
  EXPECT_TRUE(health.well());
}

TEST_F(HealthTest, AsTwemproxyEachFailureCounts) {
  auto policy = checked;
  policy.each_counts = true;
  Health health{policy, version};
  EXPECT_FALSE(health.failed(start, start + 10ms));
  EXPECT_TRUE(health.failed(start + 5ms, start + 11ms));
}

TEST_F(HealthTest, WithoutEjectionNothingEjects) {
  Health health{{.gives_up = false}, version};
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(health.failed(start + 1ms * i, start + 1ms * i));
  EXPECT_TRUE(health.well());
  EXPECT_EQ(health.retry_at(), SteadyTime::max());
}

TEST_F(HealthTest, OneCallerClaimsTheCheckThatIsDue) {
  Health health{checked, version};
  EXPECT_FALSE(health.claim_check(start)) << "it is well";
  health.failed(start, start);
  health.failed(start, start);
  EXPECT_FALSE(health.claim_check(start + 99ms));
  EXPECT_TRUE(health.claim_check(start + 100ms));
  EXPECT_FALSE(health.claim_check(start + 100ms));
  EXPECT_TRUE(health.claim_check(start + 200ms)) << "the answer to the first never came";
}

TEST_F(HealthTest, AGoodCheckBringsItBackAndABadOneDoesNot) {
  Health health{checked, version};
  eject(health);
  EXPECT_FALSE(health.checked(false, start + 100ms));
  EXPECT_FALSE(health.well());
  EXPECT_EQ(health.retry_at(), start + 200ms);
  EXPECT_TRUE(health.checked(true, start + 200ms));
  EXPECT_TRUE(health.well());
  EXPECT_FALSE(health.checked(true, start + 201ms)) << "it was back already";
  EXPECT_EQ(version, 2U);
}

TEST_F(HealthTest, WithoutChecksItComesBackWithTime) {
  Health health{unchecked, version};
  eject(health);
  EXPECT_FALSE(health.claim_check(start + 100ms));
  EXPECT_FALSE(health.come_back(start + 99ms));
  EXPECT_TRUE(health.come_back(start + 100ms));
  EXPECT_FALSE(health.come_back(start + 100ms));
}

TEST_F(HealthTest, APolicyWithoutEjectionBringsItBack) {
  Health health{unchecked, version};
  eject(health);
  EXPECT_FALSE(health.set_policy(checked));
  EXPECT_TRUE(health.set_policy({.gives_up = false}));
  EXPECT_TRUE(health.well());
}

TEST(ToldChanges, AServerThatFlapsIsToldOfNowAndThen) {
  ToldChanges told;
  std::size_t lines = 0, untold = 0, changes = 0;
  auto now = start;
  for (; now < start + 10min; now += 100ms) {
    ++changes;
    if (const auto before = told.note(now)) {
      ++lines;
      untold += *before;
    }
  }
  constexpr std::size_t later = 10min / ToldChanges::interval - 1;
  EXPECT_EQ(lines, ToldChanges::at_once + later);
  const auto last = told.overdue(now + ToldChanges::interval);
  ASSERT_TRUE(last);
  EXPECT_EQ(lines + untold + *last, changes) << "each is told or counted";
  EXPECT_FALSE(told.overdue(now + 1h)) << "nothing is left to tell";
}

TEST(ToldChanges, ACalmServerIsToldOfEachTime) {
  ToldChanges told;
  for (auto now = start; now < start + 10min; now += ToldChanges::interval)
    EXPECT_EQ(told.note(now), 0U);
}

/// docs/proxy.md has the same table.
TEST(Failures, AreThoseOfTheDocumentation) {
  std::ifstream file{test::source_path("docs/proxy.md"), std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  std::string table = "| what happens | counts | which is |\n|---|---|---|\n";
#define FAILURE(failure, counts, name, help)                                           \
  table += std::string{"| " name " | "} + (counts ? "yes" : "no") + " | " help " |\n"; \
  EXPECT_EQ(counts_against_server(Failure::failure), counts);                          \
  EXPECT_EQ(text_of(Failure::failure), name);
#include "proxy/health/failures.def"
#undef FAILURE
  EXPECT_NE(text.find(table), std::string::npos) << "docs/proxy.md has to say:\n" << table;
}

}  // namespace
}  // namespace sluice::proxy
