#include <string>
#include <string_view>

#include "engine/lua_libraries.hpp"

namespace sluice::engine {

namespace {

/// string.rep: judges the size first, and takes no time for an empty text.
int rep(lua_State* lua) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  const double count = luaL_checknumber(lua, 2);
  if (!(count >= 1) || size == 0) {
    lua_pushliteral(lua, "");
    return 1;
  }
  if (static_cast<double>(size) * count > (512UL << 20)) return luaL_error(lua, "resulting string too large");
  std::string repeated;
  const auto times = static_cast<std::size_t>(count);
  repeated.reserve(size * times);
  for (std::size_t i = 0; i < times; ++i) repeated.append(text, size);
  lua_pushlstring(lua, repeated.data(), repeated.size());
  return 1;
}

}  // namespace

void replace_string_functions(lua_State* lua) {
  lua_pushcfunction(lua, rep);
  lua_setfield(lua, -2, "rep");
}

}  // namespace sluice::engine
