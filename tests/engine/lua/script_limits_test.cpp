// What a script does that runs wild ends that script, and nothing else.
#include <gtest/gtest.h>

#include "engine/engine_session.hpp"
#include "engine/lua/scripts.hpp"
#include "sluice/clock.hpp"

namespace sluice::engine {
namespace {

class ScriptLimitsTest : public testing::Test {
 protected:
  ScriptLimitsTest() {
    session_.engine.scripts().set_limits({.steps = 3'000'000, .memory = 32UL << 20, .cached = 4});
  }

  std::string eval(const std::string& script) {
    return to_string(session_.run(Line{"EVAL", script, "0"}));
  }
  void expect_alive() {
    EXPECT_EQ(eval("redis.call('set','alive','yes') return redis.call('get','alive')"), "\"yes\"");
  }

  EngineSession session_;
};

TEST_F(ScriptLimitsTest, AnEndlessLoopEnds) {
  EXPECT_NE(eval("while true do end").find("ERR script ran longer than"), std::string::npos);
  expect_alive();
}

TEST_F(ScriptLimitsTest, PcallDoesNotKeepAnEndlessScriptAlive) {
  EXPECT_NE(eval("while true do pcall(function() while true do end end) end").find("ran longer"),
            std::string::npos);
  EXPECT_NE(
      eval("while true do pcall(pcall, function() while true do end end) end").find("ran longer"),
      std::string::npos);
  expect_alive();
}

TEST_F(ScriptLimitsTest, CoroutinesCountToo) {
  EXPECT_NE(eval("while true do coroutine.wrap(function() for i = 1, 5000 do end end)() end")
                .find("ran longer"),
            std::string::npos);
  EXPECT_NE(eval("coroutine.wrap(function() while true do end end)()").find("ran longer"),
            std::string::npos);
  expect_alive();
}

TEST_F(ScriptLimitsTest, AFunctionThatIsEndedHasDoneNothing) {
  session_.run(Line{"FUNCTION", "LOAD",
                    "#!lua name=lib\nredis.register_function('wild', function(keys) "
                    "redis.call('SET', keys[1], 1) while true do end end) "
                    "redis.register_function('large', function(keys) redis.call('SET', keys[1], 1) "
                    "local t = {} for i = 1, 1e9 do t[i] = {} end end)"});
  for (const auto* const function : {"wild", "large"}) {
    EXPECT_NE(to_string(session_.run(Line{"FCALL", function, "1", "k"})).find("is kept"),
              std::string::npos);
    EXPECT_EQ(session_.effects_text(), "");
    EXPECT_EQ(session_.run(Line{"EXISTS", "k"}), Value::integer(0));
  }
  expect_alive();
  for (const auto* const code :
       {"for i = 1, 1e12 do end", "local t = {} for i = 1, 1e9 do t[i] = {} end"}) {
    const auto reply =
        session_.run(Line{"FUNCTION", "LOAD", "REPLACE", std::string{"#!lua name=lib\n"} + code});
    EXPECT_TRUE(reply.is_error()) << to_string(reply);
  }
  EXPECT_EQ(session_.run(Line{"FUNCTION", "LIST"}).as_items().size(), 1U) << "the old one stays";
  expect_alive();
}

TEST_F(ScriptLimitsTest, CommandsCountToo) {
  EXPECT_NE(eval("while true do redis.call('incr', 'n') end").find("ran longer"),
            std::string::npos);
  expect_alive();
}

TEST_F(ScriptLimitsTest, TheClockEndsAScript) {
  class Running final : public Clock {  // 1 ms at every look
   public:
    SteadyTime steady() const noexcept override {
      return SteadyTime{std::chrono::milliseconds{++looks_}};
    }
    WallTime wall() const noexcept override { return {}; }
    TimerId at(SteadyTime, std::function<void()>) override { return 0; }
    bool cancel(TimerId) override { return false; }

   private:
    mutable int looks_ = 0;
  } clock;
  session_.engine.scripts().set_limits({.time = std::chrono::milliseconds{20}, .clock = &clock});
  EXPECT_NE(eval("while true do end").find("ran longer than 20 ms"), std::string::npos);
  session_.engine.scripts().set_limits({});
  expect_alive();
}

TEST_F(ScriptLimitsTest, MemoryIsLimited) {
  EXPECT_NE(eval("local t = {} while true do t[#t + 1] = {} end").find("not enough memory"),
            std::string::npos);
  EXPECT_NE(eval("local s = 'x' while true do s = s .. s end").find("not enough memory"),
            std::string::npos);
  EXPECT_NE(eval("return string.rep('x', 100000000)").find("not enough memory"), std::string::npos);
  EXPECT_NE(eval("return string.rep('x', 1e10)").find("too large"), std::string::npos);
  EXPECT_EQ(eval("return string.rep('', 1e10)"), "\"\"");
  expect_alive();
}

TEST_F(ScriptLimitsTest, AReplyThatIsTooLargeForAScriptEndsIt) {
  session_.run(Line{"SET", "big", std::string(40UL << 20, 'x')});
  EXPECT_NE(eval("return redis.call('getdel', 'big')").find("not enough memory"),
            std::string::npos);
  EXPECT_EQ(session_.effects_text(), "");
  EXPECT_EQ(to_string(session_.run("STRLEN big")), "(integer) 41943040");
  expect_alive();
}

TEST_F(ScriptLimitsTest, DeepRecursionIsAnError) {
  EXPECT_NE(eval("local function f() return 1 + f() end return f()").find("stack overflow"),
            std::string::npos);
  EXPECT_NE(
      eval("local function f() return 1 + string.gsub('a', 'a', f) end return f()").find("ERR"),
      std::string::npos);
  EXPECT_NE(eval("return " + std::string(1000, '(') + "1" + std::string(1000, ')'))
                .find("Error compiling"),
            std::string::npos);
  EXPECT_NE(eval("return cjson.decode(string.rep('[', 100000))").find("too many nested"),
            std::string::npos);
  EXPECT_NE(eval("return cmsgpack.unpack(string.rep('\\145', 100000))").find("ERR"),
            std::string::npos);
  expect_alive();
}

TEST_F(ScriptLimitsTest, PatternsThatBacktrackForEverEnd) {
  EXPECT_NE(
      eval("return string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40))")
          .find("ERR"),
      std::string::npos);
  EXPECT_NE(
      eval("return string.match(string.rep('a', 3000), string.rep('.-', 20) .. 'b')").find("ERR"),
      std::string::npos);
  EXPECT_NE(
      eval("return string.find(string.rep('a', 200000), string.rep('a?', 200000))").find("ERR"),
      std::string::npos);
  expect_alive();
}

TEST_F(ScriptLimitsTest, AResultThatHoldsItselfEnds) {
  EXPECT_NE(eval("local t = {} t[1] = t return t").find("reached lua stack limit"),
            std::string::npos);
  expect_alive();
}

TEST_F(ScriptLimitsTest, TheCollectorStaysOn) {
  eval("collectgarbage('stop') collectgarbage('setpause', 1000000)");
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(eval("local t = {} for i = 1, 50000 do t[i % 10] = {i} end return 1"), "(integer) 1");
}

TEST_F(ScriptLimitsTest, ScriptsOfEvalAreForgottenAndLoadedOnesKept) {
  const auto kept = session_.run(Line{"SCRIPT", "LOAD", "return 'kept'"}).as_text();
  const auto used = session_.run(Line{"EVAL", "return redis.sha1hex('return 0')", "0"}).as_text();
  eval("return 0");
  for (int i = 1; i < 20; ++i) {
    eval("return " + std::to_string(i));
    EXPECT_EQ(to_string(session_.run(Line{"EVALSHA", used, "0"})), "(integer) 0");
  }
  EXPECT_LE(session_.engine.scripts().size(), 5U);
  EXPECT_EQ(to_string(session_.run(Line{"EVALSHA", kept, "0"})), "\"kept\"");
}

TEST_F(ScriptLimitsTest, NothingOfOneScriptReachesTheNext) {
  for (const char* script :
       {"string.rep = nil", "redis.call = nil", "_G.x = 1", "x = 1", "rawset(_G, 'x', 1)",
        "rawset(string, 'x', 1)", "setmetatable(_G, {})", "setmetatable(string, {})",
        "table.insert(redis, 1)", "getmetatable('').__index = nil",
        "for k, v in pairs(string) do string[k] = nil end", "KEYS = nil", "string.format = nil"})
    EXPECT_NE(eval(script).find("readonly table"), std::string::npos) << script;
  EXPECT_NE(eval("return x").find("nonexistent global variable 'x'"), std::string::npos);
  EXPECT_NE(eval("local f, t = pairs(string) t.rep = nil").find("readonly table"),
            std::string::npos);
  EXPECT_NE(eval("local f, t = pairs(_G) t.KEYS = nil").find("readonly table"), std::string::npos);
  expect_alive();
}

TEST_F(ScriptLimitsTest, BytecodeIsRefused) {
  EXPECT_EQ(eval("return loadstring(string.dump(function() return 1 end)) == nil"), "(integer) 1");
  EXPECT_EQ(eval("local d = string.dump(function() return 1 end) return load(function() local x = "
                 "d d = nil return x end) == nil"),
            "(integer) 1");
  EXPECT_NE(eval("\x1bLua").find("ERR Error compiling"), std::string::npos);
}

TEST_F(ScriptLimitsTest, RandomNumbersAreTheSameInEveryScript) {
  const char* script = "return {math.random(1000), math.random(1000)}";
  EXPECT_EQ(eval(script), eval(script));
}

TEST_F(ScriptLimitsTest, SelectInAScriptEndsWithIt) {
  eval("redis.call('select', 3) redis.call('set', 'k', 'in three')");
  EXPECT_EQ(to_string(session_.run("GET k")), "(nil)");
  session_.run("SELECT 3");
  EXPECT_EQ(to_string(session_.run("GET k")), "\"in three\"");
}

}  // namespace
}  // namespace sluice::engine
