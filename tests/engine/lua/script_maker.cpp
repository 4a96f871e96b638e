#include "engine/lua/script_maker.hpp"

#include <array>
#include <string_view>

#include "engine/lua/scripts.hpp"

namespace sluice::test {
namespace {

constexpr std::string_view functions[] = {
    "assert",
    "collectgarbage",
    "error",
    "getmetatable",
    "ipairs",
    "load",
    "loadstring",
    "next",
    "pairs",
    "pcall",
    "rawequal",
    "rawget",
    "rawset",
    "select",
    "setmetatable",
    "tonumber",
    "tostring",
    "type",
    "unpack",
    "xpcall",
    "gcinfo",
    "string.byte",
    "string.char",
    "string.dump",
    "string.find",
    "string.format",
    "string.gmatch",
    "string.gfind",
    "string.gsub",
    "string.len",
    "string.lower",
    "string.match",
    "string.rep",
    "string.reverse",
    "string.sub",
    "string.upper",
    "table.concat",
    "table.foreach",
    "table.foreachi",
    "table.getn",
    "table.insert",
    "table.maxn",
    "table.remove",
    "table.setn",
    "table.sort",
    "math.abs",
    "math.ceil",
    "math.floor",
    "math.fmod",
    "math.frexp",
    "math.ldexp",
    "math.max",
    "math.modf",
    "math.pow",
    "math.random",
    "math.randomseed",
    "math.log",
    "coroutine.create",
    "coroutine.resume",
    "coroutine.running",
    "coroutine.status",
    "coroutine.wrap",
    "coroutine.yield",
    "bit.tobit",
    "bit.tohex",
    "bit.bnot",
    "bit.band",
    "bit.lshift",
    "bit.arshift",
    "bit.rol",
    "bit.bswap",
    "struct.pack",
    "struct.unpack",
    "struct.size",
    "cjson.encode",
    "cjson.decode",
    "cjson.new",
    "cjson.encode_max_depth",
    "cjson.encode_sparse_array",
    "cjson.encode_number_precision",
    "cjson.decode_max_depth",
    "cjson.encode_invalid_numbers",
    "cjson.encode_keep_buffer",
    "cjson.decode_invalid_numbers",
    "cmsgpack.pack",
    "cmsgpack.unpack",
    "cmsgpack.unpack_one",
    "cmsgpack.unpack_limit",
    "redis.call",
    "redis.pcall",
    "redis.sha1hex",
    "redis.error_reply",
    "redis.status_reply",
    "redis.setresp",
    "redis.set_repl",
    "redis.acl_check_cmd",
    "redis.replicate_commands",
    "redis.breakpoint",
};

constexpr std::string_view values[] = {
    "nil",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "2",
    "7",
    "100",
    "2147483646",
    "2147483647",
    "-2147483648",
    "4294967296",
    "1e308",
    "-1e308",
    "1/0",
    "0/0",
    "0.5",
    "-0",
    "2^53",
    "2^63",
    "''",
    "'a'",
    "'abc'",
    "'\\0'",
    "'%'",
    "'%b()'",
    "'%f[%a]'",
    "'(.-)(.-)x'",
    "'[^'",
    "'[a-'",
    "'%1'",
    "'.-.-.-b'",
    "('a'):rep(5000)",
    "('x'):rep(300000)",
    "('%'):rep(5000)",
    "('('):rep(5000)",
    "('['):rep(2000)",
    "('a?'):rep(30) .. ('a'):rep(30)",
    "'%99.99f'",
    "'%q'",
    "'%s%s%s%s'",
    "'c0'",
    "'!16i32'",
    "'>I8<d'",
    "'s'",
    "'i99'",
    "'\\145\\222\\255'",
    "'\\221\\255\\255\\255\\255'",
    "'[1,[2,{\"a\":null}]]'",
    "'{\"a\":1e999}'",
    "'\\27Lua'",
    "'return 1'",
    "'while true do end'",
    "'local a = {} a.a = a return a'",
    "'n'",
    "{}",
    "{1, 2, 3}",
    "{'a', 'b', n = 1}",
    "{1, nil, 3}",
    "{[-1] = 1, [2^31] = 2}",
    "loop",
    "deep",
    "strange",
    "many",
    "many_texts",
    "function() end",
    "function(...) return ... end",
    "function() error({}) end",
    "function() while true do end end",
    "function(a, b) return true end",
    "coroutine.create(function(...) coroutine.yield(...) end)",
    "print_like",
    "string",
    "_G",
    "getmetatable('')",
    "KEYS",
    "ARGV",
    "redis",
    "cjson.null",
    "cjson",
    "math.huge",
    "string.rep",
    "cmsgpack.pack",
    "coroutine.wrap",
    "pcall",
    "redis.call",
};

// Neighbours have to do with the same keys and elements.
constexpr std::string_view commands[] = {
    "'set', 'k1', V",
    "'get', 'k1'",
    "'append', 'k1', V",
    "'setrange', 'k1', V, V",
    "'setbit', 'k1', V, 1",
    "'incr', 'k2'",
    "'incrbyfloat', 'k2', V",
    "'del', 'k1', 'k2', 'k3'",
    "'rename', 'k1', 'k2'",
    "'copy', 'k1', 'k3', 'replace'",
    "'move', 'k1', 1",
    "'expire', 'k1', V",
    "'persist', 'k1'",
    "'hset', 'h', V, V",
    "'hset', 'h', 'a', V",
    "'hdel', 'h', 'a', V",
    "'hdel', 'h', V",
    "'hincrby', 'h', 'n', V",
    "'hgetall', 'h'",
    "'hrandfield', 'h', V",
    "'rpush', 'l', V, V",
    "'lpop', 'l', V",
    "'lrem', 'l', V, V",
    "'ltrim', 'l', V, V",
    "'linsert', 'l', 'before', V, V",
    "'lset', 'l', V, V",
    "'lrange', 'l', 0, -1",
    "'sadd', 's', V, V, V",
    "'srem', 's', V",
    "'sadd', 's', 1, 'a', V",
    "'srem', 's', 1, 'a'",
    "'spop', 's', V",
    "'srandmember', 's', V",
    "'sunionstore', 's', 's', 't'",
    "'zadd', 'z', V, V",
    "'zadd', 'z', V, 'a', V, 'b'",
    "'zrem', 'z', 'a', V",
    "'zincrby', 'z', V, V",
    "'zremrangebyrank', 'z', V, V",
    "'zpopmin', 'z', V",
    "'zunionstore', 'z', 2, 'z', 's'",
    "'zrange', 'z', 0, -1",
    "'xadd', 'x', '*', V, V",
    "'xadd', 'x', 'maxlen', V, '*', 'f', V",
    "'xadd', 'x', '1-1', 'f', V",
    "'xadd', 'x', '1-2', 'f', V",
    "'xdel', 'x', V",
    "'xdel', 'x', '1-1'",
    "'xtrim', 'x', 'maxlen', V",
    "'xgroup', 'create', 'x', 'g', 0, 'mkstream'",
    "'xgroup', 'destroy', 'x', 'g'",
    "'xgroup', 'delconsumer', 'x', 'g', 'c'",
    "'xreadgroup', 'group', 'g', 'c', 'streams', 'x', '>'",
    "'xreadgroup', 'group', 'g', 'd', 'streams', 'x', 0",
    "'xreadgroup', 'group', 'g', 'c', 'streams', 'x', 0",
    "'xack', 'x', 'g', V",
    "'xack', 'x', 'g', '1-1', '1-2'",
    "'xclaim', 'x', 'g', 'd', 0, '1-1', '1-2', 'force'",
    "'xautoclaim', 'x', 'g', 'e', 0, 0",
    "'sort', 'l', 'alpha', 'store', 'l'",
    "'bitop', 'not', 'k3', 'k1'",
    "'bitcount', 'k1'",
    "'bitfield', 'k1', 'set', 'u8', V, V",
    "'flushdb'",
    "'swapdb', 0, 1",
    "'select', V",
    "'publish', 'c', V",
    "'keys', '*'",
    "'scan', 0, 'count', V",
    "'mset', 'k1', V, 'k2', V",
    "'getdel', 'k1'",
    "'smove', 's', 't', V",
};

// What the values name.
constexpr std::string_view prelude =
    "local loop = {} loop[1] = loop local deep = {} for i = 1, 300 do deep = {deep} end "
    "local strange = setmetatable({1, 2}, {__index = function(t, k) return k end, "
    "__newindex = function() end, __call = function(...) return ... end, "
    "__tostring = function() return 7 end, __concat = function() return {} end, "
    "__lt = function() return 1 end, __eq = function() return true end, __mode = 'kv', "
    "__metatable = false, __len = function() return -1 end}) "
    "local many = {} for i = 1, 3000 do many[i] = i % 7 end "
    "local many_texts = {} do local s = ('x'):rep(20000) for i = 1, 3000 do many_texts[i] = s end "
    "end local print_like = function(...) return select('#', ...) end\n";

class Maker {
 public:
  explicit Maker(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::string make() {
    std::string script{prelude};
    while (at_ < bytes_.size()) script += statement(0);
    return script;
  }

 private:
  std::uint8_t next() { return at_ < bytes_.size() ? bytes_[at_++] : std::uint8_t{0}; }
  template <std::size_t size>
  std::string_view one_of(const std::string_view (&list)[size]) {
    return list[next() % size];
  }

  std::string value(int depth) {
    const auto kind = next();
    if (depth < 3 && kind < 40) return "(" + call(depth + 1) + ")";
    if (depth < 3 && kind < 50) return "{" + value(depth + 1) + ", " + value(depth + 1) + "}";
    return std::string{one_of(values)};
  }
  /// A call whose error does not end the script; its first result.
  std::string call(int depth) {
    std::string text = "select(2, pcall(" + std::string{one_of(functions)};
    for (auto count = next() % 5; count > 0; --count) text += ", " + value(depth);
    return text + "))";
  }
  std::string command() { return run(one_of(commands)); }
  /// Some that have to do with each other.
  std::string related() {
    constexpr std::size_t far = 12;
    const std::size_t first = next() % (std::size(commands) - far);
    std::string text;
    for (auto count = 2 + next() % 6; count > 0; --count)
      text += run(commands[first + next() % far]) + "\n";
    return text;
  }
  std::string run(std::string_view command) {
    std::string text = "redis.pcall(";
    for (const char c : command) {
      if (c == 'V')
        text += "tostring(" + value(2) + ")";
      else
        text += c;
    }
    return text + ")";
  }

  std::string block(int depth) {
    std::string text;
    for (auto count = next() % 4; count > 0; --count) text += statement(depth);
    return text;
  }

  std::string statement(int depth) {
    const auto kind = next() % 16;
    if (depth < 3) {
      switch (kind) {
        case 0: return "for i = 1, " + std::to_string(next()) + " do " + block(depth + 1) + "end\n";
        case 1: return "pcall(coroutine.wrap(function() " + block(depth + 1) + "end))\n";
        case 2: return "pcall(function() " + block(depth + 1) + "end)\n";
        case 3: return "if " + value(1) + " then " + block(depth + 1) + "end\n";
        default: break;
      }
    }
    switch (kind) {
      case 4:
        return "do local _ = pcall(function() return " + value(0) + " .. " + value(0) +
               " end) end\n";
      case 5:
        return "do local _ = pcall(function() return " + value(0) + " < " + value(0) +
               " end) end\n";
      case 6:
        return "pcall(function() local t = " + value(0) + " t[" + value(0) + "] = " + value(0) +
               " end)\n";
      case 7: return "pcall(function() local f = " + value(0) + " f(" + value(0) + ") end)\n";
      case 8:
        if (next() < 64) return "while true do " + block(3) + "end\n";
        [[fallthrough]];
      case 9:
      case 10: return command() + "\n";
      case 11:
      case 12: return related();
      default: return "do local _ = " + call(0) + " end\n";
    }
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

/// Says what each library has and does.
constexpr std::string_view teller =
    "local told = {} local function tell(name, t) local names = {} for k, v in pairs(t) do "
    "names[#names + 1] = name .. '.' .. tostring(k) .. ':' .. type(v) end table.sort(names) "
    "told[#told + 1] = table.concat(names, ' ') end "
    "for _, name in ipairs({'string', 'table', 'math', 'coroutine', 'bit', 'struct', 'cjson', "
    "'cmsgpack', 'redis', '_G'}) do tell(name, name == '_G' and _G or _G[name]) end "
    "told[#told + 1] = ('%s %5.2f'):format(('x'):rep(3):upper(), 1.5) .. math.random(1000) "
    "told[#told + 1] = cjson.encode({1.23456789, {a = 'b'}, {}}) "
    "told[#told + 1] = tostring(cjson.decode('[[[1]]]')[1][1][1]) "
    "told[#told + 1] = struct.pack('>I2s', 258, 'z') .. bit.tohex(255) .. #cmsgpack.pack({1}) "
    "told[#told + 1] = #KEYS .. #ARGV .. tostring(getmetatable(KEYS)) .. type(redis.call('get', "
    "'no such key')) .. tostring(getmetatable('').__index == string) return told";

}  // namespace

std::string script_of(std::span<const std::uint8_t> bytes) { return Maker{bytes}.make(); }

ScriptStage::ScriptStage() : teller_(teller), told_(told()) {}

/// However slow the machine is: what has no end here is one of the scripts that are looked at.
std::string ScriptStage::told() {
  session_.engine.scripts().set_limits({});
  auto text = to_string(session_.run(engine::Line{"EVAL", teller_, "0"}));
  session_.engine.scripts().set_limits({.time = std::chrono::milliseconds{300},
                                        .clock = &system_clock(),
                                        .steps = 300'000,
                                        .memory = 24UL << 20});
  return text;
}

std::string ScriptStage::run(const std::string& script) {
  session_.session.database = 0;
  session_.now_us += 1000;
  auto before = engine::state_of(session_);
  if (constexpr std::size_t slow_to_compare = 32'000; before.size() > slow_to_compare) {
    session_.run(engine::Line{"FLUSHALL"});
    before = engine::state_of(session_);
  }
  const auto reply = session_.run(engine::Line{"EVAL", script, "0"});
  const bool ended =
      reply.is_error() && reply.as_text().find("nothing that it did is kept") != std::string::npos;
  if (ended) {
    if (!session_.effects.empty() || !session_.published.empty() || !session_.signalled.empty())
      return "somebody hears of a script that was ended: " + session_.effects_text();
    if (const auto after = engine::state_of(session_); after != before)
      return "a script that was ended has left something:\n" + before + "\nand now:\n" + after;
  }
  if (const auto now = told(); now != told_)
    return "a script is seen by the next one:\n" + told_ + "\nand now:\n" + now;
  return {};
}

}  // namespace sluice::test
