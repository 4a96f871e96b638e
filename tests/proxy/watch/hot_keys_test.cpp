#include "proxy/watch/hot_keys.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sluice::proxy::watch {
namespace {

using namespace std::chrono_literals;

constexpr SteadyTime start{1h};

/// `hot` asked for in `share` of `count` requests, the others each for a key of its own, over
/// `lasting`.
SteadyTime ask(HotKeys& keys, std::string_view hot, double share, int count, SteadyTime from,
               std::chrono::nanoseconds lasting) {
  std::mt19937 random{11};
  std::bernoulli_distribution is_hot{share};
  for (int i = 0; i < count; ++i) {
    const auto now = from + lasting * i / count;
    if (is_hot(random)) {
      keys.note(hot, now);
    } else {
      keys.note("cold" + std::to_string(random()), now);
    }
  }
  return from + lasting;
}

TEST(HotKeys, AKeyOfATenthIsFoundWithItsRate) {
  HotKeys keys{{.sample = 8, .half_life = 10s}, start};
  const auto now = ask(keys, "hot", 0.1, 400'000, start, 40s);
  const auto top = HotKeys::top({keys.counted(now)}, 3);
  ASSERT_FALSE(top.empty());
  EXPECT_EQ(top[0].key, "hot");
  EXPECT_NEAR(top[0].share, 0.1, 0.02);
  EXPECT_NEAR(top[0].rate, 1000, 200);  // of 10,000 a second
  for (std::size_t i = 1; i < top.size(); ++i) EXPECT_LT(top[i].share, 0.02);
}

TEST(HotKeys, YesterdaysHeatFades) {
  HotKeys keys{{.sample = 4, .half_life = 10s}, start};
  auto now = ask(keys, "old", 0.5, 40'000, start, 10s);
  now = ask(keys, "new", 0.5, 40'000, now, 60s);
  const auto top = HotKeys::top({keys.counted(now)}, 2);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].key, "new");
  EXPECT_TRUE(top[1].key != "old" || top[1].share < 0.05);
  // And after a long silence nothing is left of either.
  keys.note("x", now + 24h);
  for (int i = 0; i < 100; ++i) keys.note("x", now + 24h);
  EXPECT_EQ(HotKeys::top({keys.counted(now + 24h)}, 1)[0].key, "x");
}

TEST(HotKeys, WorkersAddUp) {
  HotKeys one{{.sample = 1, .half_life = 10s}, start},
      other{{.sample = 1, .half_life = 10s}, start};
  for (int i = 0; i < 30; ++i) one.note("a", start);
  for (int i = 0; i < 20; ++i) one.note("b", start);
  for (int i = 0; i < 20; ++i) other.note("b", start);
  const auto top = HotKeys::top({one.counted(start + 1s), other.counted(start + 1s)}, 9);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].key, "b");
  EXPECT_DOUBLE_EQ(top[0].share, 40.0 / 70);
  EXPECT_DOUBLE_EQ(top[0].rate, 40);
}

TEST(HotKeys, APeriodOfTheStreamDoesNotDeceiveTheSample) {
  HotKeys keys{{.sample = 64, .half_life = 10s}, start};
  for (int i = 0; i < 640'000; ++i) keys.note(i % 64 == 0 ? "always" : "never", start);
  const auto top = HotKeys::top({keys.counted(start + 1s)}, 2);
  EXPECT_EQ(top[0].key, "never");
  ASSERT_EQ(top.size(), 2u);
  EXPECT_NEAR(top[1].share, 1.0 / 64, 0.005);
}

TEST(HotKeys, LongKeysWithOneBeginningAreTwo) {
  HotKeys keys{{.sample = 1, .half_life = 10s}, start};
  const std::string beginning(100, 'k');
  for (int i = 0; i < 5; ++i) {
    keys.note(beginning + "1", start);
    keys.note(beginning + "2", start);
  }
  const auto top = HotKeys::top({keys.counted(start)}, 9);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_TRUE(top[0].key.ends_with("..."));
  EXPECT_LT(top[0].key.size(), 70u);
}

TEST(Frictions, U32_TheTrueRateOfAHotKeyLiesBetweenTheTwoThatAreShown) {
  HotKeys keys{{}, start};
  const auto now = ask(keys, "hot", 0.02, 600'000, start, 60s);  // 200 of 10,000 a second
  const auto top = HotKeys::top({keys.counted(now)}, 1);
  ASSERT_FALSE(top.empty());
  EXPECT_EQ(top[0].key, "hot");
  EXPECT_LT(top[0].rate, 200 * 1.2);  // the sample itself is random
  EXPECT_GT(top[0].most_rate, 200 * 0.8);
  EXPECT_LE(top[0].rate, top[0].most_rate);
}

}  // namespace
}  // namespace sluice::proxy::watch
