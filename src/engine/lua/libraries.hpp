/// The libraries of a script, each in a file of its own. Each function leaves the library's table
/// on the stack.
#pragma once

#include <cstdint>
#include <lua.hpp>

namespace sluice::engine {

void push_bit_library(lua_State* lua);
void push_cjson_library(lua_State* lua);
void push_cmsgpack_library(lua_State* lua);
void push_struct_library(lua_State* lua);

/// Lua's random numbers as Redis has them: the 48-bit generator of POSIX, the same sequence in
/// every script.
struct LuaRandom {
  std::uint64_t state = 0;

  void seed(std::int32_t value) noexcept;
  std::uint32_t next() noexcept;  ///< 31 bits
};

/// Puts random and randomseed into the math library at the top of the stack.
void replace_random(lua_State* lua, LuaRandom& random);
/// Replaces functions of the string library at the top of the stack that could run for ever or
/// exhaust the C stack.
void replace_string_functions(lua_State* lua);

constexpr int lua_hook_interval =
    10'000;  ///< instructions between two looks at the limits: some 50 us

/// Charges the running script for work inside a C function; raises an error where it has spent all
/// it may.
void spend_steps(lua_State* lua, std::uint64_t steps);

/// Enters C functions into the table at the top of the stack.
void add_functions(lua_State* lua, const luaL_Reg* functions);

}  // namespace sluice::engine
