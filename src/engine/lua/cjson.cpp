/// The library "cjson": JSON as in Mark Pulford's Lua CJSON 2.1. The work is in
/// lua_cjson_encode.cpp and _decode.cpp.
#include "engine/lua/cjson.hpp"

#include <climits>
#include <new>

#include "engine/lua/libraries.hpp"

namespace sluice::engine {

namespace {

/// The setting at `argument`, if it is given, and always the present one as the result.
void integer_setting(lua_State* lua, int argument, int& setting, int least, int most) {
  if (!lua_isnil(lua, argument)) {
    const lua_Integer value = luaL_checkinteger(lua, argument);
    if (value < least || value > most)
      luaL_argerror(lua, argument,
                    lua_pushfstring(lua, "expected integer between %d and %d", least, most));
    setting = static_cast<int>(value);
  }
  lua_pushinteger(lua, setting);
}

void boolean_setting(lua_State* lua, int argument, bool& setting) {
  static constexpr const char* names[] = {"off", "on", nullptr};
  if (lua_isboolean(lua, argument)) {
    setting = lua_toboolean(lua, argument) != 0;
  } else if (!lua_isnil(lua, argument)) {
    setting = luaL_checkoption(lua, argument, nullptr, names) != 0;
  }
  lua_pushboolean(lua, setting);
}

void take_arguments(lua_State* lua, int most) {
  luaL_argcheck(lua, lua_gettop(lua) <= most, most + 1, "found too many arguments");
  lua_settop(lua, most);
}

int encode_sparse_array(lua_State* lua) {
  auto& config = cjson_config(lua);
  take_arguments(lua, 3);
  boolean_setting(lua, 1, config.sparse_as_object);
  integer_setting(lua, 2, config.sparse_ratio, 0, INT_MAX);
  integer_setting(lua, 3, config.sparse_safe, 0, INT_MAX);
  return 3;
}

template <int CjsonConfig::*member, int least, int most>
int integer_function(lua_State* lua) {
  take_arguments(lua, 1);
  integer_setting(lua, 1, cjson_config(lua).*member, least, most);
  return 1;
}

template <bool CjsonConfig::*member>
int boolean_function(lua_State* lua) {
  take_arguments(lua, 1);
  boolean_setting(lua, 1, cjson_config(lua).*member);
  return 1;
}

int encode_invalid_numbers(lua_State* lua) {
  static constexpr const char* names[] = {"off", "on", "null", nullptr};
  auto& setting = cjson_config(lua).encode_invalid;
  take_arguments(lua, 1);
  if (lua_isboolean(lua, 1)) {
    setting =
        lua_toboolean(lua, 1) ? CjsonConfig::Invalid::as_number : CjsonConfig::Invalid::refuse;
  } else if (!lua_isnil(lua, 1)) {
    setting = static_cast<CjsonConfig::Invalid>(luaL_checkoption(lua, 1, nullptr, names));
  }
  if (setting == CjsonConfig::Invalid::as_null) {
    lua_pushliteral(lua, "null");
  } else {
    lua_pushboolean(lua, setting == CjsonConfig::Invalid::as_number);
  }
  return 1;
}

int make(lua_State* lua) {
  push_cjson_library(lua);
  return 1;
}

constexpr int max_depth = 1000;  // the coder is recursive: what a thread's stack surely holds

constexpr luaL_Reg functions[] = {
    {"encode", cjson_encode},
    {"decode", cjson_decode},
    {"encode_sparse_array", encode_sparse_array},
    {"encode_max_depth", integer_function<&CjsonConfig::encode_depth, 1, max_depth>},
    {"decode_max_depth", integer_function<&CjsonConfig::decode_depth, 1, max_depth>},
    {"encode_number_precision", integer_function<&CjsonConfig::precision, 1, 14>},
    {"encode_keep_buffer", boolean_function<&CjsonConfig::keep_buffer>},
    {"encode_invalid_numbers", encode_invalid_numbers},
    {"decode_invalid_numbers", boolean_function<&CjsonConfig::decode_invalid>},
    {"new", make},
};

}  // namespace

void push_cjson_library(lua_State* lua) {
  lua_newtable(lua);
  new (lua_newuserdata(lua, sizeof(CjsonConfig)))
      CjsonConfig;  // trivially destroyed: no __gc needed
  for (const auto& function : functions) {
    lua_pushvalue(lua, -1);
    lua_pushcclosure(lua, function.func, 1);
    lua_setfield(lua, -3, function.name);
  }
  lua_pop(lua, 1);
  lua_pushlightuserdata(lua, nullptr);
  lua_setfield(lua, -2, "null");
  lua_pushliteral(lua, "cjson");
  lua_setfield(lua, -2, "_NAME");
  lua_pushliteral(lua, "2.1.0");
  lua_setfield(lua, -2, "_VERSION");
}

}  // namespace sluice::engine
