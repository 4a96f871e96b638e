/// The world of a script: the sandbox, the libraries in it, and what they share.
#pragma once

#include <cstdint>
#include <lua.hpp>
#include <string_view>
#include <vector>

#include "engine/lua/script_run.hpp"

namespace sluice::engine {

struct CjsonConfig;

// --- the sandbox ---
//
// Stock Lua has no read-only tables. A protected table is therefore an empty one (a view) with a
// metatable that looks into the real one and refuses to write. The functions that would bypass a
// metatable (rawset, next, table.insert ...) know the views. Scripts find no way to a real table.

/// Opens the base libraries in a fresh state, without what reaches outside or could harm. Leaves
/// the real table of globals on the stack for the caller to fill.
void open_sandbox(lua_State* lua);
/// Enters the table at the top of the stack, as a view, as a field of the table below it.
void set_protected(lua_State* lua, const char* name);
/// Reading a field that is not there raises an error. The table is at the top of the stack.
void refuse_missing(lua_State* lua);
/// Pushes a table that cannot be written, and that reads the one at the top of the stack instead,
/// which is popped: the __index of its metatable, which may be changed.
void push_environment(lua_State* lua);
/// Hides the globals behind a view. REQUIRES: they are at the top of the stack, where they stay.
void close_sandbox(lua_State* lua);

// --- the libraries, each in a file of its own; each function leaves its table on the stack ---

void push_bit_library(lua_State* lua);
/// Gives its settings, which live as long as the state.
CjsonConfig* push_cjson_library(lua_State* lua);
void push_cmsgpack_library(lua_State* lua);
void push_struct_library(lua_State* lua);
/// The table `redis`. Its functions use `run`, which has to outlive the state.
void push_redis_library(lua_State* lua, ScriptRun& run);

/// A function of a library, as redis.register_function took it.
struct LuaFunction {
  std::string name;
  std::optional<std::string> description;
  unsigned flags = 0;        ///< of script_flags
  int function = LUA_NOREF;  ///< in the registry
};
inline constexpr std::string_view wrong_function_name =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one "
    "character long";
bool is_function_name(std::string_view name) noexcept;
/// The table `redis` that the code of a library sees while it is loaded, but for register_function.
void push_loading_redis(lua_State* lua);

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
/// The same for the table library.
void replace_table_functions(lua_State* lua);
/// unpack, whose number of results overflows in Lua's own (CVE-2025-46817).
int unpack_table(lua_State* lua);

// --- what they share ---

/// Instructions between two looks at the limits: some 50 us.
constexpr int lua_hook_interval = 10'000;
/// The same for a script that may work for long in few instructions.
constexpr int close_hook_interval = 100;
void watch_closely(lua_State* lua);
/// Charges the running script for work inside a C function; raises an error where it has spent all
/// it may.
void spend_steps(lua_State* lua, std::uint64_t steps);
/// Raises the error of a script that was ended; nothing in it can go on.
[[noreturn]] void raise_end(lua_State* lua, const ScriptRun& run);

/// Lua's compiler counts some things in int.
constexpr std::size_t longest_chunk = 64UL << 20;

/// Enters C functions into the table at the top of the stack.
void add_functions(lua_State* lua, const luaL_Reg* functions);
/// The text at `index`, a number as its digits; raises an error for anything else.
std::string_view checked_text(lua_State* lua, int index);
/// The same, unchecked: empty where it is neither a text nor a number, which becomes one.
inline std::string_view text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, index, &size);
  return {text, size};
}
inline int push_text(lua_State* lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
  return 1;
}
/// Sets a field of the table at the top of the stack.
inline void set_text(lua_State* lua, const char* field, std::string_view text) {
  push_text(lua, text);
  lua_setfield(lua, -2, field);
}
/// Pushes {field = text}.
inline int push_table_with(lua_State* lua, const char* field, std::string_view text) {
  lua_createtable(lua, 0, 1);
  set_text(lua, field, text);
  return 1;
}

}  // namespace sluice::engine
