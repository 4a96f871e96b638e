#include "sluice/store.hpp"

#include <gtest/gtest.h>

#include "store/fake_store.hpp"
#include "store/reply_error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(Batch, KeepsItsOwnCopyInOrder) {
  constexpr Script script{"test/script", "return 1", "0"};
  Batch batch;
  EXPECT_TRUE(batch.empty());
  {
    std::string key = "key";
    const std::vector<std::string_view> keys{key};
    const std::vector<std::string_view> args{"a", "b"};
    batch.add({"SET", key, "value"}).add(script, keys, args);
    key = "overwritten";
  }
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(batch.items()[0].script, nullptr);
  EXPECT_EQ(batch.items()[0].words, (std::vector<std::string>{"SET", "key", "value"}));
  EXPECT_EQ(batch.items()[1].script, &script);
  EXPECT_EQ(batch.items()[1].key_count, 1U);
  EXPECT_EQ(batch.items()[1].words, (std::vector<std::string>{"key", "a", "b"}));
}

TEST(Store, TimeIsThatOfTheServer) {
  FakeStore store{[](const std::vector<std::string>& words) {
    EXPECT_EQ(words, (std::vector<std::string>{"TIME"}));
    return Value::array({Value::bulk_string("1704067200"), Value::bulk_string("250000")});
  }};
  EXPECT_EQ(store.time().get(), WallTime{1'704'067'200s + 250ms});
}

TEST(Store, AnOddReplyToTimeIsAnErrorThatShowsIt) {
  FakeStore store{
      [](const std::vector<std::string>&) { return Value::array({Value::integer(1)}); }};
  try {
    store.time().get();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::protocol);
    EXPECT_NE(error.message().find("[(integer) 1]"), std::string::npos) << error.message();
  }
}

TEST(Listener, IsEmptyUntilItListens) {
  FakeStore store;
  Listener listener;
  EXPECT_FALSE(listener);
  int heard = 0;
  listener = store.listen("c", [&](const Message&) { ++heard; }).get();
  EXPECT_TRUE(listener);
  store.publish("c", "");
  listener = Listener{};
  store.publish("c", "");
  EXPECT_EQ(heard, 1);
}

TEST(Frictions, U05_AScriptThatFailsBeforeItsFirstWriteHasNoEffect) {
  constexpr std::string_view text =
      "-- redis.call('set') in a comment\n"         // 1
      "local a = redis.call('get', KEYS[1])\n"      // 2
      "local b = redis.call('HGET', KEYS[1], a)\n"  // 3
      "redis.call('hset', KEYS[1], a, b)\n"         // 4
      "return redis.call('get', KEYS[2])\n";        // 5
  for (const std::size_t line : {1U, 2U, 3U, 4U})
    EXPECT_FALSE(may_have_written(text, line)) << line;
  EXPECT_TRUE(may_have_written(text, 5));
  EXPECT_TRUE(may_have_written("redis.call('get', k) redis.call('del', k)", 1));
  EXPECT_FALSE(may_have_written("local call = redis.call\ncall('get', k)\ncall('del', k)", 2));
  EXPECT_TRUE(may_have_written("local f = redis.call\nf('get', k)", 2));
  EXPECT_TRUE(may_have_written("redis.call(ARGV[1])\nredis.call('get', k)", 2));
  EXPECT_TRUE(may_have_written("redis.call('publish', c, m)\nredis.call('get', k)", 2));
  EXPECT_TRUE(
      may_have_written("for i = 1, 2 do\nredis.call('get', k)\nredis.call('del', k)\nend", 2));
  EXPECT_TRUE(may_have_written(
      "local function f()\nredis.call('get', k)\nend\nredis.call('del', k)\nf()", 2));
}

}  // namespace
}  // namespace sluice
