// The attacks of docs/engine_attacks.md on scripts, each named after its row.
#include <gtest/gtest.h>

#include "engine/engine_session.hpp"
#include "engine/lua/scripts.hpp"
#include "sluice/clock.hpp"

namespace sluice::engine {
namespace {

class ScriptAttacks : public testing::Test {
 protected:
  ScriptAttacks() { limit({.steps = 3'000'000, .memory = 32UL << 20}); }

  void limit(const ScriptLimits& limits) { session_.engine.scripts().set_limits(limits); }
  /// Against what steps do not tell. Nothing asserts how long it takes; what is not ended hangs.
  void limit_time() { limit({.time = std::chrono::milliseconds{30}, .clock = &system_clock()}); }

  std::string eval(const std::string& script) {
    return to_string(session_.run(Line{"EVAL", script, "0"}));
  }
  bool is_ended(const std::string& script) {
    const auto reply = eval(script);
    const bool ended = reply.find("nothing that it did is kept") != std::string::npos;
    if (!ended) std::printf("%s\n-> %s\n", script.c_str(), reply.c_str());
    return ended;
  }
  std::string get(const std::string& key) { return to_string(session_.run(Line{"GET", key})); }

  EngineSession session_;
};

// --- E01: functions of Lua 5.1 as Debian ships it ---

TEST_F(ScriptAttacks, E01_UnpackCountsItsResultsAsRedisDoes) {  // CVE-2025-46817
  for (const char* range : {"-1, 2147483646", "-2147483648, 2147483647", "0, 2147483647",
                            "-2147483647, 1", "1, 8000", "1, 2147483647"})
    EXPECT_EQ(eval(std::string("local ok, e = pcall(unpack, {}, ") + range + ") return e"),
              "\"too many results to unpack\"")
        << range;
  EXPECT_EQ(eval("return {unpack({1, 2, 3}, 2)}"), "[(integer) 2, (integer) 3]");
  EXPECT_EQ(eval("return select('#', unpack({}, 1, 3))"), "(integer) 3");
  EXPECT_EQ(eval("return select('#', unpack({}, 2147483647, -2147483648))"), "(integer) 0");
}

TEST_F(ScriptAttacks, E01_TheStackIsCheckedWhereverALibraryPushes) {  // CVE-2021-32626
  for (const char* script :
       {"return #{cmsgpack.unpack(string.rep('\\1', 100000))}",
        "return #{struct.unpack(string.rep('b', 100000), string.rep('x', 100000))}",
        "return cjson.encode(cjson.decode(string.rep('[', 900) .. string.rep(']', 900)))",
        "local t = {} for i = 1, 600 do t = {t} end return t",
        "local t = {} for i = 1, 7990 do t[i] = 'k' end return redis.pcall('del', unpack(t))",
        "return redis.call('mget', unpack(setmetatable({}, {}), 1, 7990))"})
    EXPECT_FALSE(eval(script).empty()) << script;
}

TEST_F(ScriptAttacks, E01_AScriptThatCannotBeReadIsAnError) {  // CVE-2022-24736, -46819, -49844
  const auto refused = [&](const std::string& script) {
    return eval(script).find("ERR Error compiling") != std::string::npos;
  };
  EXPECT_TRUE(refused("return [" + std::string(1UL << 20, '=')));
  EXPECT_TRUE(refused("return [" + std::string(1UL << 20, '=') + "[ x ]" + std::string(100, '=')));
  EXPECT_TRUE(refused("--[" + std::string(1UL << 20, '=') + "["));
  EXPECT_TRUE(refused(std::string(1UL << 20, '\0')));
  EXPECT_TRUE(refused("return '" + std::string(1UL << 20, 'x')));
  EXPECT_TRUE(refused("local " + std::string(1000, 'a') + std::string(300, ',')));
  EXPECT_TRUE(refused(std::string((64UL << 20) + 1, ' ')));
  // The reader of a chunk may collect garbage; it runs before the compiler does.
  EXPECT_EQ(eval("local n = 0 local f = load(function() collectgarbage() n = n + 1 "
                 "if n == 1 then return 'return ' elseif n < 50 then return '1 + ' "
                 "elseif n == 50 then return '1' end end, string.rep('n', 100)) return f()"),
            "(integer) 49");
  EXPECT_EQ(eval("local s = string.rep('x', 1000) for i = 1, 50 do "
                 "loadstring('local a = {' .. string.rep('\"a\", ', i * 20) .. '} return a', s .. "
                 "i) collectgarbage() end return 1"),
            "(integer) 1");
}

TEST_F(ScriptAttacks, E01_HexDigitsAreNeverMoreThanEight) {  // CVE-2024-31449
  EXPECT_EQ(eval("return bit.tohex(65535, -2147483648)"), "\"0000FFFF\"");
  EXPECT_EQ(eval("return bit.tohex(65535, 2147483647)"), "\"0000ffff\"");
}

TEST_F(ScriptAttacks, E01_NoFinalizerOfAScriptRuns) {  // CVE-2024-46981
  for (const char* name : {"newproxy", "debug", "io", "package", "require", "module", "dofile"})
    EXPECT_NE(eval(std::string("return type(") + name + ")").find("nonexistent global"),
              std::string::npos)
        << name;
  eval("local t = setmetatable({}, {__gc = function() redis.call('set', 'gc', 1) end}) t = nil");
  session_.run("SCRIPT FLUSH");
  EXPECT_EQ(get("gc"), "(nil)");
}

TEST_F(ScriptAttacks, E01_NestingEndsBeforeTheStackDoes) {
  for (
      const char* script :
      {"local function f() return coroutine.wrap(f)() end return f()",
       "local function f() local c = coroutine.create(f) return coroutine.resume(c) end return f()",
       "local function f() return pcall(f) end return f()",
       "local function f() return pcall(string.gsub, 'a', 'a', f) end return f()",
       "local function f() return table.sort({1, 2}, f) end return f()",
       "local function f() return table.foreach({1}, f) end return f()",
       "local function f() return xpcall(f, f) end return f()",
       "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end "
       "return t.x",
       "local t = setmetatable({}, {}) getmetatable(t).__concat = function(a, b) return a .. b end "
       "return t .. t"})
    EXPECT_FALSE(eval(script).empty()) << script;
}

// --- E02: a script that is ended has done nothing ---

TEST_F(ScriptAttacks, E02_WhatAnEndedScriptWroteIsUndone) {
  session_.run("SET old was");
  session_.run("RPUSH list a b c");
  EXPECT_TRUE(
      is_ended("redis.call('set', 'old', 'is') redis.call('set', 'new', 'x') redis.call('lpop', "
               "'list') redis.call('publish', 'channel', 'm') redis.call('rpush', 'fresh', 1) "
               "redis.call('pexpire', 'old', 1000) while true do end"));
  EXPECT_EQ(get("old"), "\"was\"");
  EXPECT_EQ(get("new"), "(nil)");
  EXPECT_EQ(to_string(session_.run("PTTL old")), "(integer) -1");
  EXPECT_EQ(to_string(session_.run("LRANGE list 0 -1")), "[\"a\", \"b\", \"c\"]");
}

TEST_F(ScriptAttacks, E02_NobodyHearsOfAnEndedScript) {
  EXPECT_TRUE(
      is_ended("redis.call('select', 3) redis.call('rpush', 'list', 1) "
               "redis.call('publish', 'channel', 'm') redis.call('select', 0) "
               "while true do end"));
  EXPECT_EQ(session_.effects_text(), "");
  EXPECT_TRUE(session_.signalled.empty());
  EXPECT_TRUE(session_.published.empty());
  session_.run("SET k v");
  EXPECT_EQ(session_.effects_text(), "SET k v");  // without a SELECT: the log is where it was
}

TEST_F(ScriptAttacks, E02_MemoryEndsAScriptAsAWhole) {
  for (const char* script :
       {"redis.call('set', 'k', 'v') return string.rep('x', 100000000)",
        "redis.call('set', 'k', 'v') local s = string.rep('x', 10000000) return {s, s, s, s, s}",
        "redis.call('set', 'k', 'v') local t = {} while true do t[#t + 1] = {} end",
        "redis.call('setbit', 'big', 400000000, 1) pcall(redis.call, 'get', 'big') return 1",
        "local s = string.rep('x', 4000000) while true do redis.call('set', 'k', s) end",
        "redis.call('sadd', 'set', 1) return redis.call('srandmember', 'set', -1000000000)"})
    EXPECT_TRUE(is_ended(script));
  EXPECT_EQ(to_string(session_.run("DBSIZE")), "(integer) 0");
}

TEST_F(ScriptAttacks, E02_AnErrorOfAScriptKeepsItsWritesAsInRedis) {
  EXPECT_NE(eval("redis.call('set', 'k', 'v') error('mine')").find("mine"), std::string::npos);
  EXPECT_NE(eval("redis.call('append', 'k', 'w') redis.call('lpush', 'k', 1)").find("WRONGTYPE"),
            std::string::npos);
  EXPECT_NE(eval("redis.call('append', 'k', 'x') local function f() return 1 + f() end f()")
                .find("stack overflow"),
            std::string::npos);
  EXPECT_EQ(get("k"), "\"vwx\"");
}

TEST_F(ScriptAttacks, E02_AJumpOfTheClockIsNoRunningTime) {
  class Jumping final : public Clock {  // by six seconds at every look
   public:
    SteadyTime steady() const noexcept override {
      return SteadyTime{std::chrono::seconds{looks_ += 6}};
    }
    WallTime wall() const noexcept override { return {}; }
    TimerId at(SteadyTime, std::function<void()>) override { return 0; }
    bool cancel(TimerId) override { return false; }

   private:
    mutable int looks_ = 0;
  } clock;
  limit({.clock = &clock});
  EXPECT_EQ(eval("for i = 1, 50 do redis.call('incr', 'n') end return redis.call('get', 'n')"),
            "\"50\"");
  limit({});
}

TEST_F(ScriptAttacks, E02_UndoingCostsWhatWasChanged) {
  for (int i = 0; i < 2000; ++i) session_.run(Line{"HSET", "h", std::to_string(i), "v"});
  session_.run("SETBIT bits 80000000 1");
  EXPECT_TRUE(
      is_ended("redis.call('hset', 'h', 7, 'other') redis.call('setbit', 'bits', 9, 1) "
               "redis.call('append', 'bits', 'x') while true do end"));
  EXPECT_EQ(to_string(session_.run("HGET h 7")), "\"v\"");
  EXPECT_EQ(to_string(session_.run("BITCOUNT bits")), "(integer) 1");
  EXPECT_EQ(to_string(session_.run("STRLEN bits")), "(integer) 10000001");
}

// --- E03: a limit holds in every function ---

TEST_F(ScriptAttacks, E03_CommandsOnLargeKeysAreCharged) {
  session_.run("SETBIT bits 160000000 1");
  for (int i = 0; i < 3000; ++i) session_.run(Line{"RPUSH", "list", std::to_string(i)});
  for (const char* command :
       {"'bitcount', 'bits'", "'bitpos', 'bits', 1", "'bitop', 'not', 'other', 'bits'",
        "'sort', 'list'", "'sort', 'list', 'by', 'w_*'", "'lrange', 'list', 0, -1",
        "'lpos', 'list', 'none'", "'linsert', 'list', 'before', 'none', 1"}) {
    const auto before = session_.engine.commands_run;
    EXPECT_TRUE(is_ended(std::string("while true do redis.call(") + command + ") end"));
    EXPECT_LT(session_.engine.commands_run - before, 12'000U) << command;
  }
}

TEST_F(ScriptAttacks, E03_NoFunctionOutlastsItsScript) {
  limit_time();
  for (const char* script :
       {"local s = string.rep('x', 20000000) while true do string.upper(s) end",
        "local s = string.rep('x', 20000000) while true do string.find(s, "
        "string.rep('x', 1000000) .. 'y', 1, true) end",
        "local s = string.rep('x', 1000000) return string.find(s, '[' .. string.rep('y', "
        "20000000) .. ']')",
        "local s = string.rep('a', 100000) return string.find(s, '(.-)(.-)(.-)b')",
        "local t = {} while true do table.insert(t, -16000000, 1) end",
        "local t = {} for i = 1, 3000000 do t[i] = (i * 7919) % 3000017 end table.sort(t) "
        "while true do end",
        "local a, b = string.rep('x', 30000000), string.rep('x', 30000000) .. 'y' "
        "while true do local c = a < b end",
        "local s = string.rep('0', 30000000) .. '1' while true do local c = s + 1 end",
        "local t = {} for i = 1, 2000000 do t[i] = i end for i = 1, 2000000 do t[i] = nil end "
        "while true do next(t) end",
        "while true do collectgarbage() end",
        "local s = string.rep('x', 10000000) while true do redis.sha1hex(s) end",
        "local t = {} for i = 1, 26 do t = {t, t} end return cjson.encode(t)",
        "local t = {} for i = 1, 15 do t = {t, t, t, t, t} end return cmsgpack.pack(t)",
        "while true do loadstring('return ' .. string.rep('1 + ', 10000) .. '1') end",
        "local f f = function() while true do end end coroutine.wrap(f)()",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        "xpcall(function() while true do end end, function() while true do end end)"})
    EXPECT_TRUE(is_ended(script)) << script;
  EXPECT_NE(eval("table.insert({}, -2147483648, 1)").find("position out of bounds"),
            std::string::npos);
}

TEST_F(ScriptAttacks, E03_MemoryOfCFunctionsCounts) {
  for (const char* script :
       {"local s = string.rep('\\1', 8000000) return #cjson.encode(s)",
        "return #string.gsub(string.rep('x', 4000), 'x', string.rep('y', 100000))",
        "local s = string.rep('x', 1000000) local t = {} for i = 1, 1000 do t[i] = s end "
        "return #table.concat(t)",
        "local s = string.rep('x', 1000000) local t = {} for i = 1, 1000 do t[i] = s end "
        "return #cmsgpack.pack(t)",
        "local s = string.rep('x', 1000000) local n = 0 load(function() n = n + 1 return n < 60 "
        "and s or nil end)"})
    EXPECT_TRUE(is_ended(script)) << script;
}

// --- E04: nothing of one script is visible to the next ---

TEST_F(ScriptAttacks, E04_WhatScriptsShareIsReadOnly) {  // CVE-2022-24735, CVE-2025-46818
  for (const char* script :
       {"getmetatable('').__index.format = function() return 'MT1' end",
        "getmetatable('').__index = {}",
        "getmetatable('').__add = 1",
        "setmetatable(getmetatable('').__index, {})",
        "rawset(getmetatable('').__index, 'x', 1)",
        "rawset(getmetatable(''), '__index', {})",
        "for k, v in pairs(getmetatable('')) do v.x = 1 end",
        "for k, v in pairs(_G) do if type(v) == 'table' and k ~= 'KEYS' and k ~= 'ARGV' then v.x = "
        "1 end end",
        "local s = string s.x = 1",
        "math.x = 1",
        "cjson.x = 1",
        "coroutine.x = 1",
        "bit.x = 1",
        "struct.x = 1",
        "cmsgpack.x = 1",
        "redis.x = 1",
        "_G.string.x = 1",
        "_G._G.x = 1",
        "table.insert(string, 1)",
        "table.sort(string)",
        "table.remove(table)"})
    EXPECT_NE(eval(script).find("readonly table"), std::string::npos)
        << script << " -> " << eval(script);
  EXPECT_EQ(eval("return string.format('%d', 7) .. ('x'):rep(2) .. ('%s'):format('y')"),
            "\"7xxy\"");
  EXPECT_EQ(eval("return getmetatable('').__index == string"), "(integer) 1");
}

TEST_F(ScriptAttacks, E04_SettingsOfALibraryEndWithTheScript) {
  const std::string ask = "return cjson.encode({0.123456789, {}})";
  const auto before = eval(ask);
  eval(
      "cjson.encode_number_precision(3) cjson.encode_max_depth(1) cjson.decode_max_depth(1) "
      "cjson.encode_sparse_array(true, 1, 1) cjson.encode_invalid_numbers(true) "
      "cjson.decode_invalid_numbers(false) cjson.encode_keep_buffer(false)");
  EXPECT_EQ(eval(ask), before);
  EXPECT_EQ(eval("return cjson.decode('[[1]]')[1][1]"), "(integer) 1");
  eval("redis.setresp(3) math.randomseed(7) math.random()");
  EXPECT_EQ(eval("return type(redis.call('get', 'none'))"), "\"boolean\"");
}

TEST_F(ScriptAttacks, E04_TheNextScriptHasTheMemory) {
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(eval("local s = string.rep('x', 14000000) return #s"), "(integer) 14000000") << i;
}

TEST_F(ScriptAttacks, E04_KeysAndArgumentsAreNew) {
  const std::string ask = "return {#KEYS, #ARGV, KEYS.x, getmetatable(KEYS), tostring(ARGV[1])}";
  const auto before = eval(ask);
  eval("KEYS[1] = 'k' KEYS.x = 1 ARGV[1] = 'a' setmetatable(KEYS, {__index = string})");
  eval("local k = KEYS coroutine.wrap(function() k.x = 2 end)()");
  EXPECT_EQ(eval(ask), before);
}

}  // namespace
}  // namespace sluice::engine
