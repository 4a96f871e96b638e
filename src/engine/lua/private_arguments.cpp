#include "engine/lua/private_arguments.hpp"

#include <algorithm>

#include "engine/lua/libraries.hpp"

namespace sluice::engine {
namespace {

constexpr std::size_t few_words = 32;
constexpr std::size_t short_word = 1024;

/// Globals through which a script can reach neither another table of globals nor a register of its
/// caller.
constexpr std::string_view harmless[] = {
    "ARGV",   "KEYS",   "assert", "bit",      "cjson",    "cmsgpack", "error",
    "ipairs", "math",   "next",   "pairs",    "pcall",    "redis",    "select",
    "string", "struct", "table",  "tonumber", "tostring", "type",     "unpack",
};

bool are_harmless(const std::vector<std::string>& globals) {
  return std::ranges::all_of(globals, [](const std::string& name) {
    return std::ranges::find(harmless, name) != std::end(harmless);
  });
}

}  // namespace

std::optional<PrivateArguments> PrivateArguments::of(lua_State* lua, const ChunkFacts& facts,
                                                     int globals) {
  if (facts.may_assign_globals || !facts.only_looks_words_up || !are_harmless(facts.globals))
    return std::nullopt;
  PrivateArguments words;
  lua_newtable(lua);
  for (const auto& name : facts.globals) {
    push_text(lua, name);
    lua_pushvalue(lua, -1);
    lua_rawget(lua, globals);
    lua_rawset(lua, -3);
  }
  lua_pushvalue(lua, -1);
  words.environment_ = luaL_ref(lua, LUA_REGISTRYINDEX);
  lua_setfenv(lua, -2);
  words.make(lua, words.keys_);
  words.make(lua, words.args_);
  return words;
}

void PrivateArguments::make(lua_State* lua, Table& table) {
  luaL_unref(lua, LUA_REGISTRYINDEX, table.reference);
  table.held.clear();
  table.large = false;
  lua_rawgeti(lua, LUA_REGISTRYINDEX, environment_);
  lua_newtable(lua);
  lua_pushvalue(lua, -1);
  table.reference = luaL_ref(lua, LUA_REGISTRYINDEX);
  lua_setfield(lua, -2, table.name);
  lua_pop(lua, 1);
}

void PrivateArguments::give(lua_State* lua, Words keys, Words args) {
  fill(lua, keys_, keys);
  fill(lua, args_, args);
}

void PrivateArguments::fill(lua_State* lua, Table& table, Words words) {
  auto& held = table.held;
  table.large = words.size() > few_words;
  held.reserve(words.size());
  const int before = lua_gettop(lua);
  for (std::size_t i = 0; i < std::max(words.size(), held.size()); ++i) {
    if (i < words.size() && i < held.size() && held[i] == words[i]) continue;
    if (lua_gettop(lua) == before) lua_rawgeti(lua, LUA_REGISTRYINDEX, table.reference);
    std::string_view kept;
    if (i < words.size()) {
      push_text(lua, words[i]);
      kept = {lua_tostring(lua, -1), words[i].size()};
      table.large = table.large || kept.size() > short_word;
    } else {
      lua_pushnil(lua);
    }
    lua_rawseti(lua, -2, static_cast<int>(i) + 1);
    if (i < held.size()) {
      held[i] = kept;
    } else {
      held.push_back(kept);
    }
  }
  held.resize(words.size());
  lua_settop(lua, before);
}

void PrivateArguments::let_go_of_large(lua_State* lua) {
  for (Table* const table : {&keys_, &args_})
    if (table->large) make(lua, *table);
}

void PrivateArguments::forget(lua_State* lua) {
  for (const int reference : {environment_, keys_.reference, args_.reference})
    luaL_unref(lua, LUA_REGISTRYINDEX, reference);
}

}  // namespace sluice::engine
