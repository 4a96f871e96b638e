#include <cmath>
#include <limits>

#include "engine/lua/libraries.hpp"

namespace sluice::engine {

void LuaRandom::seed(std::int32_t value) noexcept {
  state = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)) << 16) | 0x330E;
}

std::uint32_t LuaRandom::next() noexcept {
  state = (state * 0x5DEECE66DULL + 0xB) & ((1ULL << 48) - 1);
  return static_cast<std::uint32_t>(state >> 17);
}

namespace {

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

}  // namespace

void replace_random(lua_State* lua, LuaRandom& state) {
  lua_pushlightuserdata(lua, &state);
  lua_pushcclosure(lua, random, 1);
  lua_setfield(lua, -2, "random");
  lua_pushlightuserdata(lua, &state);
  lua_pushcclosure(lua, randomseed, 1);
  lua_setfield(lua, -2, "randomseed");
}

}  // namespace sluice::engine
