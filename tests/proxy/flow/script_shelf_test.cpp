#include "proxy/flow/session/script_shelf.hpp"

#include <gtest/gtest.h>

namespace sluice::proxy {
namespace {

TEST(ScriptShelf, KeepsWhatIsPut) {
  ScriptShelf shelf;
  EXPECT_EQ(shelf.find("a"), nullptr);
  EXPECT_TRUE(shelf.put("a", "return 1"));
  EXPECT_TRUE(shelf.put("a", "return 1"));
  ASSERT_NE(shelf.find("a"), nullptr);
  EXPECT_EQ(*shelf.find("a"), "return 1");
}

TEST(ScriptShelf, ForgetsWhatWasNotAskedForLongest) {
  ScriptShelf shelf{{.count = 2, .bytes = 100}};
  shelf.put("a", "1");
  shelf.put("b", "2");
  EXPECT_NE(shelf.find("a"), nullptr);
  shelf.put("c", "3");
  EXPECT_EQ(shelf.find("b"), nullptr);
  EXPECT_NE(shelf.find("a"), nullptr);
  EXPECT_NE(shelf.find("c"), nullptr);
}

TEST(ScriptShelf, KeepsSoManyBytesAndNoMore) {
  ScriptShelf shelf{{.count = 100, .bytes = 10}};
  EXPECT_FALSE(shelf.put("large", "12345678901"));
  EXPECT_TRUE(shelf.put("a", "12345"));
  EXPECT_TRUE(shelf.put("b", "12345"));
  EXPECT_TRUE(shelf.put("c", "1"));
  EXPECT_EQ(shelf.find("a"), nullptr);
  EXPECT_NE(shelf.find("b"), nullptr);
  EXPECT_TRUE(shelf.put("d", "1234567890"));
  EXPECT_EQ(shelf.find("b"), nullptr);
  EXPECT_EQ(shelf.find("c"), nullptr);
}

TEST(ScriptShelf, CountsItsClearings) {
  ScriptShelf shelf;
  shelf.put("a", "1");
  const auto before = shelf.clearings();
  shelf.clear();
  EXPECT_NE(shelf.clearings(), before);
  EXPECT_EQ(shelf.find("a"), nullptr);
  EXPECT_TRUE(shelf.put("a", "1"));
}

TEST(GivenScripts, AreOfOneConnectionAndOneStateOfTheShelf) {
  GivenScripts given;
  given.note("a", {.generation = 1, .clearings = 0});
  EXPECT_TRUE(given.has("a", {.generation = 1, .clearings = 0}));
  EXPECT_FALSE(given.has("b", {.generation = 1, .clearings = 0}));
  EXPECT_FALSE(given.has("a", {.generation = 2, .clearings = 0}));
  given.note("a", {.generation = 2, .clearings = 0});
  EXPECT_FALSE(given.has("a", {.generation = 2, .clearings = 1}));
}

}  // namespace
}  // namespace sluice::proxy
