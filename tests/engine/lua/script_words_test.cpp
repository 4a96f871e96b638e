// KEYS and ARGV are one script's own: whatever it does to them, the next one finds its words and
// nothing else.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/engine_session.hpp"

namespace sluice::engine {
namespace {

class ScriptWords : public testing::Test {
 protected:
  /// Of a script with these arguments.
  std::string eval(const std::string& script, const std::vector<std::string>& args = {}) {
    Line line{"EVAL", script, "1", "key"};
    line.insert(line.end(), args.begin(), args.end());
    return to_string(session_.run(line));
  }
  /// All that is in ARGV, by pairs and by its length, for these arguments.
  std::string seen(const std::vector<std::string>& args) {
    return eval(
        "local n, other = 0, '' "
        "for k, v in pairs(ARGV) do n = n + 1 if ARGV[n] ~= v then other = tostring(k) end end "
        "return n .. ' ' .. #ARGV .. ' ' .. table.concat(ARGV, ',') .. other .. "
        "(getmetatable(ARGV) and ' metatable' or '') .. ' ' .. #KEYS .. KEYS[1]",
        args);
  }

  EngineSession session_{3};
};

TEST_F(ScriptWords, FewerThanBefore) {
  EXPECT_EQ(seen({"a", "b", "c"}), "\"3 3 a,b,c 1key\"");
  EXPECT_EQ(seen({"d"}), "\"1 1 d 1key\"");
  EXPECT_EQ(seen({}), "\"0 0  1key\"");
  EXPECT_EQ(seen({"e", "f"}), "\"2 2 e,f 1key\"");
}

TEST_F(ScriptWords, FieldsAddedTakenAwayAndChanged) {
  for (const std::string change :
       {"ARGV.more = 1", "ARGV[7] = 'x'", "ARGV[-1] = 'x'", "ARGV[1] = nil", "ARGV[2] = 'x'",
        "table.insert(ARGV, 'x')", "table.remove(ARGV, 1)",
        "ARGV[1] = nil ARGV[2] = nil ARGV.more = 1 ARGV[1] = 'x' ARGV[2] = 'x'",
        "for i = 1, 100 do ARGV['f' .. i] = i end for i = 1, 100 do ARGV['f' .. i] = nil end",
        "for i = 1, 100 do ARGV[i] = i end", "KEYS[2] = 'x'", "KEYS.more = 1", "KEYS[1] = nil"}) {
    for (const std::vector<std::string>& next :
         {std::vector<std::string>{"p", "q", "r"}, {"p"}, {"p", "q", "r", "s"}}) {
      eval(change + " return 1", {"a", "b", "c"});
      EXPECT_EQ(seen(next).substr(0, 4),
                '"' + std::to_string(next.size()) + ' ' + std::to_string(next.size()))
          << change;
      EXPECT_NE(seen(next).find(" 1key\""), std::string::npos) << change << seen(next);
    }
  }
}

TEST_F(ScriptWords, AMetatable) {
  eval("setmetatable(ARGV, {__index = function() return 'x' end}) return 1", {"a"});
  EXPECT_EQ(seen({"a"}), "\"1 1 a 1key\"");
  eval("setmetatable(KEYS, {__newindex = function() error('no') end}) return 1");
  EXPECT_EQ(seen({"a"}), "\"1 1 a 1key\"");
}

TEST_F(ScriptWords, ManyAndThenFew) {
  const std::vector<std::string> many(5000, "m");
  EXPECT_EQ(eval("return #ARGV", many), "(integer) 5000");
  EXPECT_EQ(seen({"a"}), "\"1 1 a 1key\"");
}

TEST_F(ScriptWords, AfterThousandsOfScripts) {
  for (int i = 0; i < 2500; ++i)
    ASSERT_EQ(eval("return ARGV[2]", {"a", std::to_string(i)}), '"' + std::to_string(i) + '"');
}

TEST_F(ScriptWords, OfTheSameScriptThatOnlyLooksThemUp) {
  const std::string look =
      "return #ARGV .. ' ' .. tostring(ARGV[1]) .. ' ' .. tostring(ARGV[2]) .. ' ' .. KEYS[1]";
  EXPECT_EQ(eval(look, {"a", "b", "c"}), "\"3 a b key\"");
  EXPECT_EQ(eval(look, {"a", "x", "c"}), "\"3 a x key\"");
  EXPECT_EQ(eval(look, {"y"}), "\"1 y nil key\"");
  EXPECT_EQ(eval(look), "\"0 nil nil key\"");
  EXPECT_EQ(eval(look, {"", "b"}), "\"2  b key\"");
  const std::vector<std::string> many(100, std::string(3000, 'm'));
  EXPECT_EQ(eval(look, many).substr(0, 8), "\"100 mmm");
  EXPECT_EQ(eval(look, {"a", "b"}), "\"2 a b key\"");
  EXPECT_EQ(eval("local i = 0 return ARGV[i + 1] .. KEYS[#KEYS]", {"a"}), "\"akey\"");
}

// The words of a run are there again in the next one, which a script that keeps the tables of its
// own to itself relies on.
TEST_F(ScriptWords, OfTheSameScriptThatChangesThem) {
  for (const std::string change :
       {"ARGV[1] = 'x'", "ARGV[1] = nil", "local a = ARGV a[1] = 'x'", "table.insert(ARGV, 1, 'x')",
        "local function f(t) t[1] = 'x' end f(ARGV)", "rawset(ARGV, 1, 'x')", "_G.ARGV[1] = 'x'",
        "loadstring(\"ARGV[1] = 'x'\")()", "({ARGV})[1][1] = 'x'",
        "local function f() return ARGV end f()[1] = 'x'",
        "local i = 1 for n = 1, 2 do ARGV[i] = 'x' end", "local a = ARGV[1] and ARGV a[1] = 'x'",
        "(ARGV or KEYS)[1] = 'x'"}) {
    const std::string script = "local seen = ARGV[1]; " + change + " return seen .. #KEYS";
    for (int run = 0; run < 3; ++run) EXPECT_EQ(eval(script, {"a"}), "\"a1\"") << change << run;
  }
}

TEST_F(ScriptWords, TheNamesCannotBeAssigned) {
  EXPECT_NE(eval("ARGV = {1} return 1").find("readonly"), std::string::npos);
  EXPECT_NE(eval("local function f() KEYS = nil end f() return 1").find("readonly"),
            std::string::npos);
  EXPECT_NE(eval("redis = nil return 1").find("readonly"), std::string::npos);
  EXPECT_NE(eval("return (function() return function() ARGV = 1 end end)()()").find("readonly"),
            std::string::npos);
  EXPECT_NE(eval("return loadstring('KEYS = 1')()").find("readonly"), std::string::npos);
  EXPECT_NE(eval("return coroutine.wrap(loadstring('redis = 1'))()").find("readonly"),
            std::string::npos);
  EXPECT_NE(eval("_G.KEYS = 1 return 1").find("readonly"), std::string::npos);
  EXPECT_NE(eval("rawset(_G, 'KEYS', 1) return 1").find("readonly"), std::string::npos);
  EXPECT_NE(eval("local x = 'a' .. 1.5 .. tostring(true) return nosuch").find("nonexistent"),
            std::string::npos);
  EXPECT_EQ(seen({"a"}), "\"1 1 a 1key\"");
}

}  // namespace
}  // namespace sluice::engine
