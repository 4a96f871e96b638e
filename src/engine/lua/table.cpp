// What scripts get instead of functions of the table library, which stock Lua runs without bound:
// each of these charges the script for its steps.
#include <cstdint>

#include "engine/lua/libraries.hpp"
#include "engine/lua/memory.hpp"

namespace sluice::engine {
namespace {

constexpr int steps_a_charge = 1000;

/// Steps of a loop that runs no instruction of Lua.
class Steps {
 public:
  explicit Steps(lua_State* lua) noexcept : lua_(lua) {}
  void step() {
    if (++steps_ < steps_a_charge) return;
    steps_ = 0;
    spend_steps(lua_, steps_a_charge / 4);
  }

 private:
  lua_State* lua_;
  int steps_ = 0;
};

int size_of(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  return static_cast<int>(lua_objlen(lua, 1));
}

int insert(lua_State* lua) {
  const int end = size_of(lua) + 1;
  int place = end;
  switch (lua_gettop(lua)) {
    case 2: break;
    case 3: {
      place = luaL_checkint(lua, 2);
      // Stock Lua moves 2^31 elements where the place is -2^31.
      luaL_argcheck(lua, place >= 0 || end - static_cast<std::int64_t>(place) < (1 << 24), 2,
                    "position out of bounds");
      Steps steps{lua};
      for (int i = std::max(end, place); i > place; --i) {
        steps.step();
        lua_rawgeti(lua, 1, i - 1);
        lua_rawseti(lua, 1, i);
      }
      break;
    }
    default: return luaL_error(lua, "wrong number of arguments to 'insert'");
  }
  lua_rawseti(lua, 1, place);
  return 0;
}

int remove(lua_State* lua) {
  const int end = size_of(lua);
  int place = luaL_optint(lua, 2, end);
  if (place < 1 || place > end) return 0;
  Steps steps{lua};
  lua_rawgeti(lua, 1, place);
  for (; place < end; ++place) {
    steps.step();
    lua_rawgeti(lua, 1, place + 1);
    lua_rawseti(lua, 1, place);
  }
  lua_pushnil(lua);
  lua_rawseti(lua, 1, end);
  return 1;
}

int concat(lua_State* lua) {
  const auto separator = lua_isnoneornil(lua, 2) ? std::string_view{} : checked_text(lua, 2);
  luaL_checktype(lua, 1, LUA_TTABLE);
  const int first = luaL_optint(lua, 3, 1);
  const int last = lua_isnoneornil(lua, 4) ? size_of(lua) : luaL_checkint(lua, 4);
  ScriptString text{ScriptAllocator<char>{lua}};
  Steps steps{lua};
  for (std::int64_t i = first; i <= last; ++i) {
    steps.step();
    lua_rawgeti(lua, 1, static_cast<int>(i));
    if (lua_isstring(lua, -1) == 0)
      return luaL_error(lua, "invalid value (%s) at index %d in table for 'concat'",
                        luaL_typename(lua, -1), static_cast<int>(i));
    text += text_at(lua, -1);
    if (i < last) text += separator;
    lua_pop(lua, 1);
  }
  return push_text(lua, text);
}

/// A comparison of sort that no hook sees: the one of the machine, or a C function (upvalue 1).
int compare(lua_State* lua) {
  spend_steps(lua, 20);
  if (lua_isnil(lua, lua_upvalueindex(1))) {
    lua_pushboolean(lua, lua_lessthan(lua, 1, 2));
    return 1;
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_pushvalue(lua, 1);
  lua_pushvalue(lua, 2);
  lua_call(lua, 2, 1);
  return 1;
}

/// Upvalue 1 is Lua's own, 2 the comparison for short tables of which nobody named one.
int sort(lua_State* lua) {
  const int size = size_of(lua);
  if (!lua_isnoneornil(lua, 2)) luaL_checktype(lua, 2, LUA_TFUNCTION);
  lua_settop(lua, 2);
  constexpr int short_table = 1000;
  if (lua_iscfunction(lua, 2) != 0 || (lua_isnil(lua, 2) && size > short_table)) {
    lua_pushcclosure(lua, compare, 1);
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, 2, 0);
  return 0;
}

/// foreach and foreachi: the function may be one in C.
int for_each(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  for (lua_pushnil(lua); lua_next(lua, 1) != 0;) {
    spend_steps(lua, 20);
    lua_pushvalue(lua, 2);
    lua_pushvalue(lua, -3);
    lua_pushvalue(lua, -3);
    lua_call(lua, 2, 1);
    if (!lua_isnil(lua, -1)) return 1;
    lua_pop(lua, 2);
  }
  return 0;
}

int for_each_index(lua_State* lua) {
  const int size = size_of(lua);
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  for (int i = 1; i <= size; ++i) {
    spend_steps(lua, 20);
    lua_pushvalue(lua, 2);
    lua_pushinteger(lua, i);
    lua_rawgeti(lua, 1, i);
    lua_call(lua, 2, 1);
    if (!lua_isnil(lua, -1)) return 1;
    lua_pop(lua, 1);
  }
  return 0;
}

constexpr luaL_Reg table_functions[] = {
    {"concat", concat}, {"foreach", for_each}, {"foreachi", for_each_index},
    {"insert", insert}, {"remove", remove},    {nullptr, nullptr},
};

}  // namespace

void replace_table_functions(lua_State* lua) {
  add_functions(lua, table_functions);
  lua_getfield(lua, -1, "sort");
  lua_pushcclosure(lua, sort, 1);
  lua_setfield(lua, -2, "sort");
}

int unpack_table(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const std::int64_t first = luaL_optint(lua, 2, 1);
  const std::int64_t last =
      lua_isnoneornil(lua, 3) ? static_cast<int>(lua_objlen(lua, 1)) : luaL_checkint(lua, 3);
  if (first > last) return 0;
  const auto count = last - first + 1;
  if (count >= LUAI_MAXCSTACK || lua_checkstack(lua, static_cast<int>(count)) == 0)
    return luaL_error(lua, "too many results to unpack");
  for (auto i = first; i <= last; ++i) lua_rawgeti(lua, 1, static_cast<int>(i));
  return static_cast<int>(count);
}

}  // namespace sluice::engine
