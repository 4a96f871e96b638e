#include "proxy/watch/slow_log.hpp"

#include <gtest/gtest.h>

#include "proxy/watch/excerpt.hpp"

namespace sluice::proxy {
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

}  // namespace
}  // namespace sluice::proxy
