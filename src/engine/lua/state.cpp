#include "engine/lua/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/lua/cjson.hpp"
#include "engine/lua/libraries.hpp"
#include "engine/lua/reply.hpp"

namespace sluice::engine {
namespace {

// What lies at the bottom of the stack all the time.
enum StackSlot { slot_handler = 1, slot_globals, slot_keys, slot_args, slots = slot_args };

// A table of at most so many words is filled again for the next script, and at most so often:
// fields that a script adds and removes leave empty places, which every search passes.
constexpr std::size_t few_given = 32;
constexpr unsigned most_fills = 1000;
constexpr std::size_t bytes_a_step = 64;

struct Library {
  const char* name;
  void (*push)(lua_State*);
};
constexpr Library libraries[] = {{"bit", push_bit_library},
                                 {"cmsgpack", push_cmsgpack_library},
                                 {"struct", push_struct_library}};

char run_key;  // the registry's pointer to the ScriptRun

ScriptRun& run_of(lua_State* lua) {
  lua_pushlightuserdata(lua, &run_key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
  auto& run = *static_cast<ScriptRun*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return run;
}

/// Instructions until the next look. One may take as long as all memory is large (two texts are
/// compared, a table is made anew), so the more is in use the closer a script is watched.
int interval_with(std::size_t used) {
  constexpr std::size_t little = 4UL << 20;
  if (used < little) return lua_hook_interval;
  return static_cast<int>(std::max<std::size_t>(little * close_hook_interval / used, 1));
}

void on_count(lua_State* lua, lua_Debug*);

void watch(lua_State* lua, int interval) { lua_sethook(lua, on_count, LUA_MASKCOUNT, interval); }

void on_count(lua_State* lua, lua_Debug*) {
  const int interval = lua_gethookcount(lua);
  ScriptRun& run = run_of(lua);
  const int wanted = std::min(interval, interval_with(run.memory->used));
  if (wanted < interval) watch(lua, wanted);
  run.steps += static_cast<std::uint64_t>(interval);
  if (look_at_limits(run)) raise_end(lua, run);
}

/// The message handler: an error of any type becomes its text; where it was raised is noted in the
/// run.
int on_error(lua_State* lua) {
  auto& run = *static_cast<ScriptRun*>(lua_touserdata(lua, lua_upvalueindex(1)));
  lua_Debug where{};
  for (int level = 1; level <= 2 && lua_getstack(lua, level, &where) != 0; ++level) {
    lua_getinfo(lua, "Sl", &where);
    run.error_source = where.source;
    run.error_line = where.currentline;
    if (*where.what != 'C') break;
  }
  if (lua_istable(lua, 1)) {
    lua_pushliteral(lua, "err");
    lua_rawget(lua, 1);
    if (lua_type(lua, -1) != LUA_TSTRING) lua_pushliteral(lua, "ERR unknown error");
    return 1;
  }
  lua_getfield(lua, lua_upvalueindex(2), "tostring");
  lua_pushliteral(lua, "ERR ");
  lua_insert(lua, -2);
  lua_pushvalue(lua, 1);
  lua_call(lua, 1, 1);
  lua_concat(lua, 2);
  return 1;
}

/// Outside a script only a lack of memory can be the reason.
int on_panic(lua_State*) { throw std::bad_alloc(); }

}  // namespace

void spend_steps(lua_State* lua, std::uint64_t steps) {
  ScriptRun& run = run_of(lua);
  if (spend(run, steps)) raise_end(lua, run);
}

void raise_end(lua_State* lua, const ScriptRun& run) {
  // The hook runs at every instruction from now on, so that pcall cannot go on.
  watch(lua, 1);
  push_error(lua, run.end_text());
  lua_error(lua);
  std::unreachable();
}

void watch_closely(lua_State* lua) {
  watch(lua, std::min(lua_gethookcount(lua), close_hook_interval));
}

LuaState::LuaState(ScriptRun& run, Use use)
    : run_(run),
      lua_(lua_newstate(LuaMemory::allocate, &memory_)),
      keys_{slot_keys, "KEYS"},
      args_{slot_args, "ARGV"} {
  if (lua_ == nullptr) throw std::bad_alloc();
  lua_atpanic(lua_, on_panic);
  run_.memory = &memory_;
  memory_.limit = run.limits.memory;
  memory_.owner = this;
  memory_.allow_large = [](void* self, std::size_t size) {
    auto& state = *static_cast<LuaState*>(self);
    const bool ended = spend(state.run_, size / bytes_a_step);
    watch(state.lua_, ended ? 1 : interval_with(state.memory_.used + size));
    return !ended;
  };

  lua_pushlightuserdata(lua_, &run_key);
  lua_pushlightuserdata(lua_, &run_);
  lua_rawset(lua_, LUA_REGISTRYINDEX);

  open_sandbox(lua_);
  lua_getfield(lua_, -1, "math");
  replace_random(lua_, random_);
  set_protected(lua_, "math");
  push_redis_library(lua_, run_);
  set_protected(lua_, "redis");
  cjson_ = push_cjson_library(lua_);
  set_protected(lua_, "cjson");
  for (const auto& library : libraries) {
    library.push(lua_);
    set_protected(lua_, library.name);
  }
  close_sandbox(lua_);

  lua_pushlightuserdata(lua_, &run_);
  lua_pushvalue(lua_, -2);
  lua_pushcclosure(lua_, on_error, 2);
  lua_insert(lua_, slot_handler);
  bottom_ = slots;
  lua_settop(lua_, bottom_);
  if (use == Use::functions) {
    lua_pushvalue(lua_, slot_globals);
    make_environment();
    return;
  }
  give_new(keys_, {});
  give_new(args_, {});
}

LuaState::~LuaState() { lua_close(lua_); }

std::expected<void, std::string> LuaState::load_chunk(std::string_view text, const char* name) {
  if (text.starts_with(LUA_SIGNATURE[0])) return std::unexpected("bytecode is not allowed");
  if (text.size() > longest_chunk)
    return std::unexpected(
        fmt::format("it has {} bytes, more than {}", text.size(), longest_chunk));
  run_.memory = &memory_;
  memory_.limit = run_.limits.memory;
  run_.start();
  make_room();
  memory_.lenient = false;
  lua_pushstring(lua_, name);  // stays: the compiler itself does not hold on to it
  const int status = luaL_loadbuffer(lua_, text.data(), text.size(), lua_tostring(lua_, -1));
  memory_.lenient = true;
  lua_remove(lua_, -2);
  if (status == 0) return {};
  std::string error = lua_tostring(lua_, -1);
  pop();
  return std::unexpected(std::move(error));
}

std::expected<LuaScript, std::string> LuaState::compile(std::string_view text) {
  if (const auto loaded = load_chunk(text, "@user_script"); !loaded)
    return std::unexpected("ERR Error compiling script (new function): " + loaded.error());
  // The view over the globals refuses assignments. A script that makes none reads the globals
  // directly, in half the time.
  const auto facts = facts_of(lua_);
  if (!facts.may_assign_globals) {
    lua_pushvalue(lua_, slot_globals);
    lua_setfenv(lua_, -2);
  }
  LuaScript script{.own = PrivateArguments::of(lua_, facts, slot_globals)};
  script.function = luaL_ref(lua_, LUA_REGISTRYINDEX);
  return script;
}

void LuaState::forget(LuaScript& script) {
  luaL_unref(lua_, LUA_REGISTRYINDEX, script.function);
  if (script.own) script.own->forget(lua_);
}

void LuaState::give(LuaScript& script, Words keys, Words args) {
  if (script.own) return script.own->give(lua_, keys, args);
  give(keys_, keys);
  give(args_, args);
}

/// Nothing that a script did to its KEYS and ARGV may reach the next one: a table is used again
/// only if it then holds the new words and nothing else.
void LuaState::give(Given& given, Words words) {
  if (words.size() > few_given || given.size > few_given || ++given.fills > most_fills)
    return give_new(given, words);
  fill(given, words);
  if (!holds_only(given.slot, words.size())) give_new(given, words);
}

void LuaState::give_new(Given& given, Words words) {
  lua_createtable(lua_, static_cast<int>(words.size()), 0);
  lua_replace(lua_, given.slot);
  given.size = 0;
  given.fills = 0;
  fill(given, words);
  lua_pushstring(lua_, given.name);
  lua_pushvalue(lua_, given.slot);
  lua_rawset(lua_, slot_globals);
}

void LuaState::fill(Given& given, Words words) {
  int index = 0;
  for (const auto& word : words) {
    push_text(lua_, word);
    lua_rawseti(lua_, given.slot, ++index);
  }
  for (auto old = words.size(); old < given.size; ++old) {
    lua_pushnil(lua_);
    lua_rawseti(lua_, given.slot, ++index);
  }
  given.size = words.size();
}

/// REQUIRES: the table has the fields 1 to `size`.
bool LuaState::holds_only(int slot, std::size_t size) {
  if (lua_getmetatable(lua_, slot) != 0) return lua_pop(lua_, 1), false;
  std::size_t fields = 0;
  for (lua_pushnil(lua_); lua_next(lua_, slot) != 0; lua_pop(lua_, 1)) {
    if (++fields > size) return lua_pop(lua_, 2), false;
  }
  return true;
}

void LuaState::begin_run() {
  run_.memory = &memory_;
  memory_.limit = run_.limits.memory;
  random_.seed(0);
  run_.start();
  *cjson_ = {};
  make_room();
  watch(lua_, interval_with(memory_.used));
}

std::expected<void, std::string> LuaState::run_pushed(int arguments, int results) {
  memory_.refused = false;
  memory_.lenient = false;
  const int status = lua_pcall(lua_, arguments, results, slot_handler);
  memory_.lenient = true;
  if (status == 0) return {};
  return std::unexpected(failure(status));
}

std::expected<void, std::string> LuaState::call(LuaScript& script, Words keys, Words args) {
  give(script, keys, args);
  begin_run();
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, script.function);
  auto done = run_pushed(0, 1);
  if (script.own) script.own->let_go_of_large(lua_);
  return done;
}

std::string LuaState::failure(int status) {
  std::string text = lua_isstring(lua_, -1) ? lua_tostring(lua_, -1) : "execution failure";
  pop();
  const bool out_of_memory =
      status == LUA_ERRMEM || (memory_.refused && text == "ERR not enough memory");
  if (out_of_memory && !run_.ended()) run_.end = ScriptRun::End::memory;
  if (status != LUA_ERRRUN && !run_.ended()) {
    run_.end = ScriptRun::End::failure;
    run_.failure = text;
  }
  return run_.ended() ? run_.end_text() : text;
}

/// The next script is to have the memory that the one before has left.
void LuaState::make_room() {
  if (memory_.used <= garbage_at_) return;
  lua_gc(lua_, LUA_GCCOLLECT, 0);
  garbage_at_ = 2 * memory_.used + little_garbage;
}

}  // namespace sluice::engine
