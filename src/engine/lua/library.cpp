// Libraries of functions: what their code sees while it is loaded, and how a function is called.
//
// The code and its functions have one environment, a table with nothing in it that reads another
// one: while the code runs that one holds `redis` with register_function alone, afterwards it is
// the globals of scripts.
#include <algorithm>
#include <utility>

#include "engine/lua/libraries.hpp"
#include "engine/lua/reply.hpp"
#include "engine/lua/state.hpp"
#include "resp/letters.hpp"

namespace sluice::engine {
namespace {

char environment_key, globals_key, loading_globals_key;  // of the registry

void keep(lua_State* lua, char& key) {
  lua_pushlightuserdata(lua, &key);
  lua_insert(lua, -2);
  lua_rawset(lua, LUA_REGISTRYINDEX);
}
void push_kept(lua_State* lua, char& key) {
  lua_pushlightuserdata(lua, &key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
}

/// The table at the top of the stack, which is popped, is what the environment reads from now on.
void read_through_environment(lua_State* lua) {
  push_kept(lua, environment_key);
  lua_getmetatable(lua, -1);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 3);
}

/// A text or a number at the top of the stack; or raises an error that names the argument.
std::string named_text(lua_State* lua, const char* argument) {
  if (lua_isstring(lua, -1) == 0)
    raise_error(lua, std::string{"ERR "} + argument +
                         " argument given to redis.register_function must be a string");
  return std::string{text_at(lua, -1)};
}

unsigned flags_at_top(lua_State* lua) {
  if (!lua_istable(lua, -1))
    raise_error(lua,
                "ERR flags argument to redis.register_function must be a table representing "
                "function flags");
  unsigned flags = 0;
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    if (lua_isnil(lua, -1)) break;
    const auto word = text_at(lua, -1);
    const auto known = std::ranges::find_if(
        script_flags, [&](std::string_view flag) { return resp::is_word(word, flag); });
    if (known == script_flags.end()) raise_error(lua, "ERR unknown flag given");
    flags |= 1U << (known - script_flags.begin());
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  return flags;
}

/// {function_name=, callback=, description=, flags=}; leaves the callback at index 2.
LuaFunction read_named(lua_State* lua) {
  if (!lua_istable(lua, 1))
    raise_error(lua,
                "ERR calling redis.register_function with a single argument is only applicable to "
                "Lua table (representing named arguments).");
  LuaFunction function;
  bool has_name = false;
  lua_pushnil(lua);
  for (lua_pushnil(lua); lua_next(lua, 1) != 0; lua_pop(lua, 1)) {
    if (lua_type(lua, -2) != LUA_TSTRING)
      raise_error(lua, "ERR named argument key given to redis.register_function is not a string");
    const auto key = text_at(lua, -2);
    if (resp::is_word(key, "function_name")) {
      function.name = named_text(lua, "function_name");
      has_name = true;
    } else if (resp::is_word(key, "description")) {
      function.description = named_text(lua, "description");
    } else if (resp::is_word(key, "callback")) {
      if (!lua_isfunction(lua, -1))
        raise_error(lua,
                    "ERR callback argument given to redis.register_function must be a function");
      lua_pushvalue(lua, -1);
      lua_replace(lua, 2);
    } else if (resp::is_word(key, "flags")) {
      function.flags = flags_at_top(lua);
    } else {
      raise_error(lua, "ERR unknown argument given to redis.register_function");
    }
  }
  if (!has_name) raise_error(lua, "ERR redis.register_function must get a function name argument");
  if (lua_isnil(lua, 2))
    raise_error(lua, "ERR redis.register_function must get a callback argument");
  return function;
}

LuaFunction read_positional(lua_State* lua) {
  if (lua_isstring(lua, 1) == 0)
    raise_error(lua, "ERR first argument to redis.register_function must be a string");
  if (!lua_isfunction(lua, 2))
    raise_error(lua, "ERR second argument to redis.register_function must be a function");
  LuaFunction function;
  function.name = text_at(lua, 1);
  return function;
}

int register_function(lua_State* lua) {
  using Loading = std::vector<LuaFunction>* const;
  auto* functions = *static_cast<Loading*>(lua_touserdata(lua, lua_upvalueindex(1)));
  if (functions == nullptr)
    raise_error(lua, "ERR redis.register_function can only be called on FUNCTION LOAD command");
  const int count = lua_gettop(lua);
  if (count < 1 || count > 2)
    raise_error(lua, "ERR wrong number of arguments to redis.register_function");
  auto function = count == 1 ? read_named(lua) : read_positional(lua);
  if (!is_function_name(function.name)) raise_error(lua, "ERR " + std::string{wrong_function_name});
  const auto is_same = [&](const LuaFunction& other) {
    return std::ranges::equal(other.name, function.name, {}, resp::lower, resp::lower);
  };
  if (std::ranges::any_of(*functions, is_same))
    raise_error(lua, "ERR Function already exists in the library");
  lua_pushvalue(lua, 2);
  function.function = luaL_ref(lua, LUA_REGISTRYINDEX);
  functions->push_back(std::move(function));
  return 0;
}

}  // namespace

bool is_function_name(std::string_view name) noexcept {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (resp::lower(c) >= 'a' && resp::lower(c) <= 'z') || c == '_';
  });
}

void LuaState::make_environment() {
  lua_pushvalue(lua_, -1);
  keep(lua_, globals_key);
  push_environment(lua_);
  keep(lua_, environment_key);

  lua_newtable(lua_);
  push_loading_redis(lua_);
  lua_pushlightuserdata(lua_, &loading_);
  lua_pushcclosure(lua_, register_function, 1);
  lua_setfield(lua_, -2, "register_function");
  refuse_missing(lua_);
  set_protected(lua_, "redis");
  refuse_missing(lua_);
  keep(lua_, loading_globals_key);
}

std::expected<void, std::string> LuaState::load(std::string_view code,
                                                std::vector<LuaFunction>& functions) {
  if (const auto loaded = load_chunk(code, "@user_function"); !loaded)
    return std::unexpected("ERR Error compiling function: " + loaded.error());
  push_kept(lua_, environment_key);
  lua_setfenv(lua_, -2);
  push_kept(lua_, loading_globals_key);
  read_through_environment(lua_);
  begin_run();
  loading_ = &functions;
  const auto done = run_pushed(0, 0);
  loading_ = nullptr;
  push_kept(lua_, globals_key);
  read_through_environment(lua_);
  if (done) return {};
  return std::unexpected("ERR Error registering functions: " + done.error());
}

std::expected<void, std::string> LuaState::call(const LuaFunction& function, Words keys,
                                                Words args) {
  begin_run();
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, function.function);
  for (const auto words : {keys, args}) {
    lua_createtable(lua_, static_cast<int>(words.size()), 0);
    for (std::size_t i = 0; i < words.size(); ++i) {
      push_text(lua_, words[i]);
      lua_rawseti(lua_, -2, static_cast<int>(i) + 1);
    }
  }
  return run_pushed(2, 1);
}

void LuaState::forget(const LuaFunction& function) {
  luaL_unref(lua_, LUA_REGISTRYINDEX, function.function);
}

}  // namespace sluice::engine
