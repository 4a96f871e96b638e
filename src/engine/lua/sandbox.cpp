#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "engine/lua/libraries.hpp"
#include "engine/lua/memory.hpp"

namespace sluice::engine {
namespace {

constexpr const char* readonly = "Attempt to modify a readonly table";

/// The registry's table of views: view -> the real table.
char views_key;

void push_views(lua_State* lua) {
  lua_pushlightuserdata(lua, &views_key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
}

/// Pushes the real table if the value at `index` is a view; upvalue 1 holds the views.
bool push_real(lua_State* lua, int index) {
  if (!lua_istable(lua, index)) return false;
  lua_pushvalue(lua, index);
  lua_rawget(lua, lua_upvalueindex(1));
  if (!lua_isnil(lua, -1)) return true;
  lua_pop(lua, 1);
  return false;
}

int refuse_write(lua_State* lua) { return luaL_error(lua, "%s", readonly); }

int refuse_global(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    luaL_checkstring(lua, 2));
}

/// A function of the base libraries; upvalue 2. It has no upvalues of its own, so that it can be
/// called in place.
int original(lua_State* lua) { return lua_tocfunction(lua, lua_upvalueindex(2))(lua); }

/// The same for one that has some.
int call_original(lua_State* lua) {
  lua_pushvalue(lua, lua_upvalueindex(2));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
  return lua_gettop(lua);
}

/// A new coroutine counts its instructions from nothing, as closely as the one that makes it: so
/// it costs beforehand what it may run unseen.
int charge_coroutine(lua_State* lua) {
  watch_closely(lua);
  spend_steps(lua, close_hook_interval);
  return original(lua);
}

template <lua_CFunction call>
int refuse_view(lua_State* lua) {
  if (push_real(lua, 1)) {
    lua_pushstring(lua, readonly);
    return lua_error(lua);
  }
  return call(lua);
}

template <lua_CFunction call>
int use_real(lua_State* lua) {
  if (push_real(lua, 1)) lua_replace(lua, 1);
  return call(lua);
}

/// pairs: upvalue 2 is the plain next, 3 the one that knows views.
int pairs(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  const bool is_view = push_real(lua, 1);
  lua_pushvalue(lua, lua_upvalueindex(is_view ? 3 : 2));
  lua_pushvalue(lua, 1);
  lua_pushnil(lua);
  return 3;
}

int get_metatable(lua_State* lua) {
  if (!push_real(lua, 1)) return original(lua);
  lua_pushnil(lua);
  return 1;
}

/// pcall as Redis has it: an error that is a table with `err` is given as that text.
int protected_call(lua_State* lua) {
  luaL_checkany(lua, 1);
  lua_pushboolean(lua, 1);
  lua_insert(lua, 1);
  if (lua_pcall(lua, lua_gettop(lua) - 2, LUA_MULTRET, 0) == 0) return lua_gettop(lua);
  lua_remove(lua, 1);
  if (lua_istable(lua, -1)) {
    lua_getfield(lua, -1, "err");
    if (lua_isstring(lua, -1)) lua_replace(lua, -2);
  }
  lua_pushboolean(lua, 0);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

/// xpcall. Lua's own calls the handler where the error is raised: inside the hook, when that ends
/// the script, and there no hook ends the handler. Without the library "debug" nobody can tell that
/// it is called later.
int handled_call(lua_State* lua) {
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  lua_insert(lua, 1);
  if (lua_pcall(lua, 0, LUA_MULTRET, 0) == 0) {
    lua_pushboolean(lua, 1);
    lua_replace(lua, 1);
    return lua_gettop(lua);
  }
  if (lua_pcall(lua, 1, 1, 0) != 0) {
    lua_pop(lua, 1);
    lua_pushliteral(lua, "error in error handling");
  }
  lua_pushboolean(lua, 0);
  lua_insert(lua, 1);
  return 2;
}

/// Up to 18 decimal digits; nothing: the text is something else.
std::optional<std::uint64_t> digits_in(std::string_view text) noexcept {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

/// tonumber. Most texts are digits; Lua's own reads any text twice, by strtod.
int to_number(lua_State* lua) {
  if (lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING) {
    if (const auto number = digits_in(text_at(lua, 1))) {
      lua_pushnumber(lua, static_cast<double>(*number));
      return 1;
    }
  }
  return original(lua);
}

/// Compiles the text on the stack at `index`; nil and a message where it is none. Bytecode could
/// crash the machine.
int compile(lua_State* lua, int index, const char* name) {
  const auto text = text_at(lua, index);
  if (text.starts_with(LUA_SIGNATURE[0])) {
    lua_pushnil(lua);
    lua_pushliteral(lua, "bytecode is not allowed in scripts");
    return 2;
  }
  if (text.size() > longest_chunk) {
    lua_pushnil(lua);
    lua_pushliteral(lua, "chunk is too long");
    return 2;
  }
  spend_steps(lua, text.size());  // the compiler runs unseen
  if (luaL_loadbuffer(lua, text.data(), text.size(), name) == 0) return 1;
  lua_pushnil(lua);
  lua_insert(lua, -2);
  return 2;
}

int load_string(lua_State* lua) {
  const char* text = luaL_checkstring(lua, 1);
  return compile(lua, 1, luaL_optstring(lua, 2, text));
}

/// load(function): the pieces are put together before they are compiled, so that the first bytes
/// can be judged.
int load_pieces(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  const char* name = luaL_optstring(lua, 2, "=(load)");
  ScriptString text{ScriptAllocator<char>{lua}};
  for (;;) {
    lua_pushvalue(lua, 1);
    lua_call(lua, 0, 1);
    std::size_t size = 0;
    const char* piece = lua_isnil(lua, -1) ? nullptr : lua_tolstring(lua, -1, &size);
    if (piece == nullptr && !lua_isnil(lua, -1))
      return luaL_error(lua, "reader function must return a string");
    if (size == 0) break;
    if (text.size() + size > longest_chunk) return luaL_error(lua, "chunk is too long");
    text.append(piece, size);
    lua_pop(lua, 1);
  }
  push_text(lua, text);
  return compile(lua, lua_gettop(lua), name);
}

/// A script may look and collect, but not change how the collector works for those that come after
/// it.
int collect_garbage(lua_State* lua) {
  static constexpr const char* options[] = {"collect", "count",    "step",       "stop",
                                            "restart", "setpause", "setstepmul", nullptr};
  const int option = luaL_checkoption(lua, 1, "collect", options);
  constexpr std::uint64_t steps_a_kilobyte = 10;
  if (option == 0 || option == 2)
    spend_steps(lua, static_cast<std::uint64_t>(lua_gc(lua, LUA_GCCOUNT, 0)) * steps_a_kilobyte);
  switch (option) {
    case 0: lua_gc(lua, LUA_GCCOLLECT, 0); break;
    case 1:
      lua_pushnumber(lua, lua_gc(lua, LUA_GCCOUNT, 0) + lua_gc(lua, LUA_GCCOUNTB, 0) / 1024.0);
      return 1;
    case 2: lua_pushboolean(lua, lua_gc(lua, LUA_GCSTEP, luaL_optint(lua, 2, 0))); return 1;
    default: break;
  }
  lua_pushnumber(lua, 0);
  return 1;
}

/// The function `name` of the table at the top is replaced by `wrapper`, which has the views and
/// the old one as upvalues.
void wrap(lua_State* lua, const char* name, lua_CFunction wrapper) {
  push_views(lua);
  lua_getfield(lua, -2, name);
  lua_pushcclosure(lua, wrapper, 2);
  lua_setfield(lua, -2, name);
}

void set_function(lua_State* lua, const char* name, lua_CFunction function) {
  lua_pushcfunction(lua, function);
  lua_setfield(lua, -2, name);
}

void remove(lua_State* lua, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    lua_pushnil(lua);
    lua_setfield(lua, -2, name);
  }
}

/// pairs and next; a plain table is still iterated by the plain next.
void replace_iteration(lua_State* lua) {
  push_views(lua);
  lua_getfield(lua, -2, "next");
  lua_pushvalue(lua, -2);
  lua_pushvalue(lua, -2);
  lua_pushcclosure(lua, use_real<original>, 2);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, -5, "next");
  lua_pushcclosure(lua, pairs, 3);  // of the views and both forms of next
  lua_setfield(lua, -2, "pairs");
}

void open(lua_State* lua, lua_CFunction library) {
  lua_pushcfunction(lua, library);
  lua_call(lua, 0, 0);
}

}  // namespace

std::string_view checked_text(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, index, &size);
  return {text, size};
}

void add_functions(lua_State* lua, const luaL_Reg* functions) {
  for (; functions->name != nullptr; ++functions)
    set_function(lua, functions->name, functions->func);
}

void set_protected(lua_State* lua, const char* name) {
  push_views(lua);
  lua_newtable(lua);  // the view
  lua_createtable(lua, 0, 2);
  lua_pushvalue(lua, -4);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, -2);

  lua_pushvalue(lua, -1);
  lua_pushvalue(lua, -4);
  lua_rawset(lua, -4);  // views[view] = real

  lua_setfield(lua, -4, name);
  lua_pop(lua, 2);
}

void open_sandbox(lua_State* lua) {
  lua_pushlightuserdata(lua, &views_key);
  lua_newtable(lua);
  lua_rawset(lua, LUA_REGISTRYINDEX);

  for (const auto library : {luaopen_base, luaopen_table, luaopen_string, luaopen_math})
    open(lua, library);
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  // newproxy: a finalizer would run where no limit holds. setfenv: the environment of a cached
  // script would stay changed.
  remove(lua,
         {"dofile", "loadfile", "print", "newproxy", "setfenv", "getfenv", "module", "require"});
  for (const char* name : {"rawset", "setmetatable"}) wrap(lua, name, refuse_view<original>);
  wrap(lua, "rawget", use_real<original>);
  set_function(lua, "unpack", unpack_table);
  wrap(lua, "tonumber", to_number);
  wrap(lua, "getmetatable", get_metatable);
  replace_iteration(lua);
  set_function(lua, "pcall", protected_call);
  set_function(lua, "xpcall", handled_call);
  set_function(lua, "loadstring", load_string);
  set_function(lua, "load", load_pieces);
  set_function(lua, "collectgarbage", collect_garbage);

  lua_getfield(lua, -1, "table");
  replace_table_functions(lua);
  for (const char* name : {"insert", "remove", "setn"}) wrap(lua, name, refuse_view<original>);
  wrap(lua, "sort", refuse_view<call_original>);
  for (const char* name : {"foreach", "foreachi", "maxn", "getn"})
    wrap(lua, name, use_real<original>);
  set_protected(lua, "table");

  lua_getfield(lua, -1, "string");
  replace_string_functions(lua);
  set_protected(lua, "string");
  lua_getfield(lua, -1, "coroutine");
  for (const char* name : {"create", "wrap"}) wrap(lua, name, charge_coroutine);
  set_protected(lua, "coroutine");

  lua_pushliteral(lua, "");  // the metatable that all strings share: a script gets another
  lua_getmetatable(lua, -1);
  lua_createtable(lua, 0, 1);
  lua_getfield(lua, -4, "string");
  lua_setfield(lua, -2, "__index");
  set_protected(lua, "__metatable");
  lua_pop(lua, 2);
}

void refuse_missing(lua_State* lua) {
  lua_createtable(lua, 0, 1);
  lua_pushcfunction(lua, refuse_global);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, -2);
}

void push_environment(lua_State* lua) {
  lua_newtable(lua);
  lua_createtable(lua, 0, 2);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

void close_sandbox(lua_State* lua) {
  refuse_missing(lua);
  lua_pushvalue(lua, -1);
  set_protected(lua, "_G");  // _G._G is the view itself
  lua_pushliteral(lua, "_G");
  lua_rawget(lua, -2);
  lua_replace(lua, LUA_GLOBALSINDEX);
}

}  // namespace sluice::engine
