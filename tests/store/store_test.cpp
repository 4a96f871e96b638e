#include "sluice/store.hpp"

#include <gtest/gtest.h>

#include <array>

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

Effect effect_of(std::string_view reply, std::string_view text) {
  const Script script{.name = "a script", .text = text, .sha1 = {}, .is_of_sluice = true};
  return error_of_script(reply, script, {}).effect();
}

TEST(ReplyError, TheLineOfALuaErrorWasDone) {
  constexpr std::string_view compares =
      "if redis.call('INCR', KEYS[1]) > tonumber(ARGV[1]) then\nend";
  EXPECT_EQ(effect_of("ERR user_script:1: attempt to compare nil with number script: c0ffee, on "
                      "@user_script:1.",
                      compares),
            Effect::unknown);
  EXPECT_EQ(effect_of("WRONGTYPE wrong script: c0ffee, on @user_script:1.", compares),
            Effect::none);
}

TEST(ReplyError, Redis6NamesTheLineInFront) {
  constexpr std::string_view text =
      "redis.call('set', KEYS[1], 1)\nredis.call('lpush', KEYS[1], 1)";
  EXPECT_EQ(
      effect_of("ERR Error running script (call to f_c0ffee): @user_script:2: WRONGTYPE wrong",
                text),
      Effect::unknown);
  EXPECT_EQ(
      effect_of("ERR Error running script (call to f_c0ffee): @user_script:1: WRONGTYPE wrong",
                text),
      Effect::none);
}

TEST(ReplyError, AnErrorThatAScriptReturnsNamesNoLine) {
  EXPECT_EQ(
      effect_of("WRONGTYPE wrong", "redis.call('set', 'k', 1)\nreturn redis.pcall('get', 'l')"),
      Effect::unknown);
  EXPECT_EQ(effect_of("WRONGTYPE wrong", "return redis.error_reply('WRONGTYPE wrong')"),
            Effect::none);
  EXPECT_EQ(effect_of("WRONGTYPE wrong; nothing was written", "redis.call('set', 'k', 1)"),
            Effect::none);
  EXPECT_EQ(effect_of("NOSCRIPT no matching script", "redis.call('set', 'k', 1)"), Effect::none);
}

TEST(ReplyError, AServerRefusesForItsOwnStateOnlyBeforeAScriptHasWritten) {
  constexpr std::string_view text = "redis.call('set', 'k', 1)\nreturn redis.call('set', 'l', 1)";
  for (const std::string why : {"READONLY no", "OOM no", "MISCONF no", "NOREPLICAS no"}) {
    EXPECT_EQ(effect_of(why + " script: c0ffee, on @user_script:2.", text), Effect::none) << why;
    EXPECT_EQ(
        effect_of("ERR Error running script (call to f_c0ffee): @user_script:2: -" + why, text),
        Effect::none)
        << why;
  }
}

TEST(ReplyError, WhatAUserMayNotDoInAScriptIsNotPermitted) {
  for (const auto* const reply :
       {"ERR The user executing the script can't run this command or subcommand script: c0ffee, "
        "on @user_script:2.",
        "ERR ACL failure in script: User u has no permissions to run the 'publish' command script: "
        "c0ffee, on @user_script:2."}) {
    EXPECT_EQ(error_of_reply(reply).errc(), Errc::authentication) << reply;
    EXPECT_EQ(effect_of(reply, "redis.call('set', 'k', 1)\nredis.call('publish', 'c', 'm')"),
              Effect::unknown)
        << reply;
    const Script script{.name = "s",
                        .text = "redis.call('get', 'k')\nredis.call('publish', 'c', 'm')",
                        .sha1 = {},
                        .is_of_sluice = true};
    const Error error = error_of_script(reply, script, {});
    EXPECT_TRUE(error.message().starts_with("s: NOPERM publish: ERR ")) << error.message();
    EXPECT_EQ(error.effect(), Effect::none) << reply;
  }
}

/// It may have written before it said what it says; what a server says is known.
TEST(ReplyError, CO08_WhatAProgramsScriptHasDoneIsNotGuessed) {
  const Script script{.name = "s", .text = "return redis.error_reply(ARGV[1])", .sha1 = {}};
  const std::string_view eval[] = {"EVAL", "return redis.error_reply(ARGV[1])", "0", "x"};
  for (const auto* const reply :
       {"ERR no", "WRONGTYPE no", "NOPERM mine", "OOM mine", "READONLY mine", "TRYAGAIN mine",
        "BUSY mine", "NOAUTH mine", "MISCONF mine", "LOADING mine", "NOSCRIPT mine",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "ERR user_script:1: x script: c0ffee, on @user_script:1.",
        "READONLY You can't write against a read only replica. script: c0, on @user_script:1."}) {
    EXPECT_EQ(error_of_script(reply, script, {}).effect(), Effect::unknown) << reply;
    EXPECT_EQ(error_of_command(reply, eval).effect(), Effect::unknown) << reply;
  }
  for (const auto* const reply :
       {"READONLY You can't write against a read only replica.",
        "NOSCRIPT No matching script. Please use EVAL.", "NOAUTH Authentication required.",
        "LOADING Redis is loading the dataset in memory",
        "LOADING Valkey is loading the dataset in memory",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "NOPERM User u has no permissions to run the 'eval' command",
        "NOPERM this user has no permissions to run the 'eval' command or its subcommand"}) {
    EXPECT_EQ(error_of_script(reply, script, {}).effect(), Effect::none) << reply;
    EXPECT_EQ(error_of_command(reply, eval).effect(), Effect::none) << reply;
  }
}

TEST(ReplyError, OfManyKeysThatAreMigratedSomeMayHaveGone) {
  const std::string_view migrate[] = {"MIGRATE", "h", "1", "", "0", "9", "KEYS", "a", "b"};
  const auto effect = [&](std::string_view reply) {
    return error_of_command(reply, migrate).effect();
  };
  EXPECT_EQ(
      effect("ERR Target instance replied with error: BUSYKEY Target key name already exists."),
      Effect::unknown);
  EXPECT_EQ(effect("LOADING Redis is loading the dataset in memory"), Effect::none);
}

TEST(ReplyError, WritesThatHideAreFound) {
  EXPECT_TRUE(may_have_written("redis.call('xgroup', 'create')\nredis.call('get', k)", 2));
  EXPECT_TRUE(may_have_written("redis.call('hset', k, 'n',\n  redis.call('incr', l))", 1));
  EXPECT_TRUE(may_have_written("--[[x]] redis.call('set', k, 1)\nredis.call('get', k)", 2));
}

TEST(ReplyError, WhatAProxyNeverGotAReplyForMayHaveHappened) {
  EXPECT_EQ(error_of_command("ERR Connection timed out", {}).effect(), Effect::unknown);
  const Script theirs{.name = "shop/sell", .text = "return 1", .sha1 = ""};
  Batch batch;
  batch.add(theirs, std::array<std::string_view, 1>{"stock"}, {}).add({"INCR", "stock"});
  const auto sold_out = error_of_item(batch.items()[0], "SOLDOUT of tea");
  EXPECT_EQ(sold_out.effect(), Effect::unknown);
  EXPECT_TRUE(sold_out.message().starts_with("shop/sell of 'stock': SOLDOUT")) << sold_out.what();
  EXPECT_EQ(error_of_item(batch.items()[1], "ERR value is not an integer").effect(), Effect::none);
  EXPECT_EQ(error_of_command("ERR Connection refused", {}).effect(), Effect::none);
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
