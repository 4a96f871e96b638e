#include "proxy/flow/session/script_cache.hpp"

#include <gtest/gtest.h>

namespace sluice::proxy::flow {
namespace {

TEST(ScriptCache, KeepsWhatIsPut) {
  ScriptCache cache;
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_TRUE(cache.put("a", "return 1"));
  EXPECT_TRUE(cache.put("a", "return 1"));
  ASSERT_NE(cache.find("a"), nullptr);
  EXPECT_EQ(*cache.find("a"), "return 1");
}

TEST(ScriptCache, ForgetsWhatWasNotAskedForLongest) {
  ScriptCache cache{{.count = 2, .bytes = 100}};
  cache.put("a", "1");
  cache.put("b", "2");
  EXPECT_NE(cache.find("a"), nullptr);
  cache.put("c", "3");
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_NE(cache.find("a"), nullptr);
  EXPECT_NE(cache.find("c"), nullptr);
}

TEST(ScriptCache, KeepsSoManyBytesAndNoMore) {
  ScriptCache cache{{.count = 100, .bytes = 10}};
  EXPECT_FALSE(cache.put("large", "12345678901"));
  EXPECT_TRUE(cache.put("a", "12345"));
  EXPECT_TRUE(cache.put("b", "12345"));
  EXPECT_TRUE(cache.put("c", "1"));
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_NE(cache.find("b"), nullptr);
  EXPECT_TRUE(cache.put("d", "1234567890"));
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_EQ(cache.find("c"), nullptr);
}

TEST(ScriptCache, CountsItsClearings) {
  ScriptCache cache;
  cache.put("a", "1");
  const auto before = cache.clearings();
  cache.clear();
  EXPECT_NE(cache.clearings(), before);
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_TRUE(cache.put("a", "1"));
}

TEST(LoadedScripts, AreOfOneConnectionAndOneStateOfTheShelf) {
  LoadedScripts given;
  given.note("a", {.generation = 1, .clearings = 0});
  EXPECT_TRUE(given.has("a", {.generation = 1, .clearings = 0}));
  EXPECT_FALSE(given.has("b", {.generation = 1, .clearings = 0}));
  EXPECT_FALSE(given.has("a", {.generation = 2, .clearings = 0}));
  given.note("a", {.generation = 2, .clearings = 0});
  EXPECT_FALSE(given.has("a", {.generation = 2, .clearings = 1}));
}

}  // namespace
}  // namespace sluice::proxy::flow
