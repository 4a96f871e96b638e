// What scripts get instead of functions of the base libraries: random numbers that are the same in
// every script; rep, find, match, gmatch and gsub, which stock Lua runs without bound.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "engine/lua/libraries.hpp"
#include "engine/lua/memory.hpp"
#include "engine/lua/pattern.hpp"

namespace sluice::engine {
namespace {

// --- math ---

LuaRandom& generator(lua_State* lua) {
  return *static_cast<LuaRandom*>(lua_touserdata(lua, lua_upvalueindex(1)));
}

int random(lua_State* lua) {
  constexpr std::uint32_t most = std::numeric_limits<std::int32_t>::max();
  const double fraction = static_cast<double>(generator(lua).next() % most) / most;

  const int arguments = lua_gettop(lua);
  if (arguments == 0) {
    lua_pushnumber(lua, fraction);
    return 1;
  }
  if (arguments > 2) return luaL_error(lua, "wrong number of arguments");
  const double low = arguments == 1 ? 1 : luaL_checkint(lua, 1);
  const double high = luaL_checkint(lua, arguments);
  luaL_argcheck(lua, low <= high, arguments, "interval is empty");
  lua_pushnumber(lua, std::floor(fraction * (high - low + 1)) + low);
  return 1;
}

int randomseed(lua_State* lua) {
  generator(lua).seed(luaL_checkint(lua, 1));
  return 0;
}

// --- string ---

constexpr std::size_t longest = 512UL << 20;

/// Checks the size first, and takes no time for an empty text.
int rep(lua_State* lua) {
  const auto text = checked_text(lua, 1);
  const double count = luaL_checknumber(lua, 2);
  if (!(count >= 1) || text.empty()) return push_text(lua, "");
  if (static_cast<double>(text.size()) * count > static_cast<double>(longest))
    return luaL_error(lua, "resulting string too large");
  ScriptString repeated{ScriptAllocator<char>{lua}};
  const std::size_t size = text.size() * static_cast<std::size_t>(count);
  spend_steps(lua, size / 64);
  repeated.reserve(size);
  repeated = text;
  while (repeated.size() < size)  // twice as much each time
    repeated.append(repeated, 0, size - repeated.size());
  return push_text(lua, repeated);
}

/// Where the third argument lets a search begin.
std::size_t start_at(lua_State* lua, std::size_t size) {
  const auto wanted = luaL_optinteger(lua, 3, 1);
  const auto length = static_cast<lua_Integer>(size);
  const auto from_front = wanted < 0 ? std::max<lua_Integer>(length + wanted + 1, 0) : wanted;
  return static_cast<std::size_t>(std::clamp<lua_Integer>(from_front - 1, 0, length));
}

int find_plain(lua_State* lua, std::string_view text, std::string_view wanted, std::size_t start) {
  // memmem takes no more steps than both texts are long, where find() takes their product.
  spend_steps(lua, (text.size() - start) / 64);
  const auto rest = text.substr(start);
  const void* at = ::memmem(rest.data(), rest.size(), wanted.data(), wanted.size());
  if (at == nullptr) return 0;
  const auto found = static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
  lua_pushinteger(lua, static_cast<lua_Integer>(found + 1));
  lua_pushinteger(lua, static_cast<lua_Integer>(found + wanted.size()));
  return 2;
}

template <bool positions>
int find_or_match(lua_State* lua) {
  const auto text = checked_text(lua, 1);
  const auto wanted = checked_text(lua, 2);
  const auto start = start_at(lua, text.size());
  const auto nothing = [&] { return lua_pushnil(lua), 1; };
  if (positions && (lua_toboolean(lua, 4) != 0 ||
                    wanted.find_first_of("^$*+?.([%-") == std::string_view::npos)) {
    const int found = find_plain(lua, text, wanted, start);
    return found != 0 ? found : nothing();
  }
  const bool anchored = wanted.starts_with('^');
  LuaPattern pattern(lua, text, anchored ? wanted.substr(1) : wanted);
  for (const char* at = text.data() + start; at <= pattern.end(); ++at) {
    pattern.start();
    if (const char* end = pattern.match(at)) {
      pattern.settle();
      if (!positions) return pattern.push_captures(at, end);
      lua_pushinteger(lua, at - text.data() + 1);
      lua_pushinteger(lua, end - text.data());
      return 2 + pattern.push_captures(at, end, false);
    }
    if (anchored) break;
  }
  pattern.settle();
  return nothing();
}

/// One step of gmatch; upvalues: text, pattern, where to go on.
int next_match(lua_State* lua) {
  const auto text = checked_text(lua, lua_upvalueindex(1));
  LuaPattern pattern(lua, text, checked_text(lua, lua_upvalueindex(2)));
  for (const char* at = text.data() + lua_tointeger(lua, lua_upvalueindex(3)); at <= pattern.end();
       ++at) {
    pattern.start();
    const char* end = pattern.match(at);
    if (end == nullptr) continue;
    lua_pushinteger(lua, end - text.data() + (end == at ? 1 : 0));
    lua_replace(lua, lua_upvalueindex(3));
    pattern.settle();
    return pattern.push_captures(at, end);
  }
  pattern.settle();
  return 0;
}

int gmatch(lua_State* lua) {
  checked_text(lua, 1);
  checked_text(lua, 2);
  lua_settop(lua, 2);
  lua_pushinteger(lua, 0);
  lua_pushcclosure(lua, next_match, 3);
  return 1;
}

/// The third argument of gsub as a text: %0 to %9 stand for captures.
void add_template(lua_State* lua, LuaPattern& pattern, const char* from, const char* to,
                  ScriptString& out) {
  const auto given = checked_text(lua, 3);
  if (given.size() > 64) spend_steps(lua, given.size() / 16);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '%') {
      out += given[i];
      continue;
    }
    const char c = ++i < given.size() ? given[i] : '\0';
    if (!std::isdigit(static_cast<unsigned char>(c))) {
      out += c;
    } else if (c == '0') {
      out.append(from, to);
    } else {
      pattern.push_capture(c - '1', from, to);
      out += checked_text(lua, -1);
      lua_pop(lua, 1);
    }
  }
}

void add_replacement(lua_State* lua, LuaPattern& pattern, const char* from, const char* to,
                     ScriptString& out) {
  switch (lua_type(lua, 3)) {
    case LUA_TFUNCTION:
      if (lua_iscfunction(lua, 3) != 0) spend_steps(lua, 20);
      lua_pushvalue(lua, 3);
      lua_call(lua, pattern.push_captures(from, to), 1);
      break;
    case LUA_TTABLE:
      pattern.push_capture(0, from, to);
      lua_gettable(lua, 3);
      break;
    default: return add_template(lua, pattern, from, to, out);
  }
  if (lua_toboolean(lua, -1) == 0) {
    out.append(from, to);
  } else if (lua_isstring(lua, -1) == 0) {
    luaL_error(lua, "invalid replacement value (a %s)", luaL_typename(lua, -1));
  } else {
    out += checked_text(lua, -1);
  }
  lua_pop(lua, 1);
}

int gsub(lua_State* lua) {
  const auto text = checked_text(lua, 1);
  const auto wanted = checked_text(lua, 2);
  const int type = lua_type(lua, 3);
  luaL_argcheck(
      lua,
      type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
      "string/function/table expected");
  const auto most = luaL_optinteger(lua, 4, static_cast<lua_Integer>(text.size()) + 1);
  const bool anchored = wanted.starts_with('^');
  LuaPattern pattern(lua, text, anchored ? wanted.substr(1) : wanted);
  ScriptString out{ScriptAllocator<char>{lua}};
  lua_Integer count = 0;
  const char* at = pattern.begin();
  while (count < most) {
    pattern.start();
    const char* end = pattern.match(at);
    if (end != nullptr) {
      ++count;
      add_replacement(lua, pattern, at, end, out);
      if (out.size() > longest) luaL_error(lua, "resulting string too large");
    }
    if (end != nullptr && end > at) {
      at = end;
    } else if (at < pattern.end()) {
      out += *at++;
    } else {
      break;
    }
    if (anchored) break;
  }
  pattern.settle();
  out.append(at, pattern.end());
  push_text(lua, out);
  lua_pushinteger(lua, count);
  return 2;
}

constexpr luaL_Reg functions[] = {
    {"rep", rep},
    {"find", find_or_match<true>},
    {"match", find_or_match<false>},
    {"gmatch", gmatch},
    {"gfind", gmatch},
    {"gsub", gsub},
    {nullptr, nullptr},
};

}  // namespace

void LuaRandom::seed(std::int32_t value) noexcept {
  state = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)) << 16) | 0x330E;
}

std::uint32_t LuaRandom::next() noexcept {
  state = (state * 0x5DEECE66DULL + 0xB) & ((1ULL << 48) - 1);
  return static_cast<std::uint32_t>(state >> 17);
}

void replace_random(lua_State* lua, LuaRandom& state) {
  lua_pushlightuserdata(lua, &state);
  lua_pushcclosure(lua, random, 1);
  lua_setfield(lua, -2, "random");
  lua_pushlightuserdata(lua, &state);
  lua_pushcclosure(lua, randomseed, 1);
  lua_setfield(lua, -2, "randomseed");
}

void replace_string_functions(lua_State* lua) { add_functions(lua, functions); }

}  // namespace sluice::engine
