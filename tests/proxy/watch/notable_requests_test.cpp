#include "proxy/watch/notable_requests.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::proxy::watch {
namespace {

using namespace std::chrono_literals;

constexpr WallTime now{std::chrono::seconds{1'000'000}};

SlowRequest request(std::string_view key, std::chrono::nanoseconds took = 20ms) {
  return {.took = took, .pool = "p", .command = "get", .key = key, .client = "c", .server = "s"};
}

TEST(SlowLog, TheThresholdItselfIsSlow) {
  SlowLog log{4, 10ms};
  EXPECT_TRUE(log.is_slow(10ms));
  EXPECT_FALSE(log.is_slow(10ms - 1ns));
  log.set_limits(4, 20ms);
  EXPECT_FALSE(log.is_slow(10ms));
}

TEST(SlowLog, NotesSoManyInASecondAndNoMore) {
  SlowLog log{4, 10ms};
  for (const SteadyTime second : {SteadyTime{5s}, SteadyTime{6s}}) {
    for (std::size_t i = 0; i < SlowLog::most_a_second; ++i) EXPECT_TRUE(log.may_note(second));
    EXPECT_FALSE(log.may_note(second));
    EXPECT_FALSE(log.may_note(second + 999ms));
  }
}

TEST(SlowLog, KeepsTheNewestAndNoMoreThanItMay) {
  SlowLog log{2, 10ms};
  for (const auto* key : {"a", "b", "c"}) log.note(request(key), now);
  const auto entries = log.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].key, "c");
  EXPECT_EQ(entries[1].key, "b");
  EXPECT_GT(entries[0].id, entries[1].id);
  EXPECT_EQ(entries[0].took, 20ms);
  log.set_limits(1, 10ms);
  EXPECT_EQ(log.entries().size(), 1u);
  log.reset();
  EXPECT_TRUE(log.entries().empty());
}

TEST(SlowLog, AKeyIsCutAndCannotBreakALine) {
  SlowLog log{2, 10ms};
  log.note(request(std::string(1000, 'x')), now);
  log.note(request("a\r\n\x01\"\\\xff"), now);
  const auto entries = log.entries();
  EXPECT_EQ(entries[0].key, R"(a\x0d\x0a\x01\"\\\xff)");
  EXPECT_EQ(entries[1].key, std::string(excerpt_size, 'x') + "...");
}

constexpr WallTime began{std::chrono::seconds{1'000'000}};

TEST(BigValues, TheLargestStayAndAKeyStandsOnce) {
  BigValues values{100};
  EXPECT_TRUE(values.is_big(100));
  EXPECT_FALSE(values.is_big(99));
  for (std::uint64_t i = 0; i < 3 * BigValues::entries; ++i)
    values.note(100 + i % 50, "p", "set", "key" + std::to_string(i), began);
  values.note(1000, "p", "set", "huge", began);
  values.note(900, "p", "set", "huge", began);
  const auto all = values.values(began);
  ASSERT_EQ(all.size(), BigValues::entries);
  EXPECT_EQ(all[0].key, "huge");
  EXPECT_EQ(all[0].bytes, 900u);  // as it is now
  EXPECT_NE(all[1].key, "huge");
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i - 1].bytes, all[i].bytes);
}

TEST(BigValues, AreForgottenAfterTheirTime) {
  BigValues values{100};
  values.note(500, "p", "get", "old", began);
  EXPECT_EQ(values.values(began + BigValues::memory).size(), 1u);
  EXPECT_TRUE(values.values(began + BigValues::memory + 1s).empty());
  values.note(200, "p", "get", "new", began + BigValues::memory + 1s);
  EXPECT_EQ(values.values(began).size(), 1u);  // the old one is gone for good
}

}  // namespace
}  // namespace sluice::proxy::watch
