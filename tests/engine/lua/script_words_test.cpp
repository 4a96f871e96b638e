// KEYS and ARGV are one script's own: whatever it does to them, the next one finds its words and nothing else.
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

TEST_F(ScriptWords, TheNamesCannotBeAssigned) {
  EXPECT_NE(eval("ARGV = {1} return 1").find("readonly"), std::string::npos);
  EXPECT_NE(eval("local function f() KEYS = nil end f() return 1").find("readonly"),
            std::string::npos);
  EXPECT_NE(eval("redis = nil return 1").find("readonly"), std::string::npos);
  EXPECT_EQ(seen({"a"}), "\"1 1 a 1key\"");
}

}  // namespace
}  // namespace sluice::engine
