/// KEYS and ARGV tables of one script alone, for a script that only looks words up in them.
///
/// Such a script cannot change its tables, so they need not be searched for what it left in them,
/// and a word that is the same as in the last run (as most are) stays where it is: Lua neither
/// hashes it nor looks for it among its strings.
#pragma once

#include <lua.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::engine {

/// What the bytecode of a compiled script tells about it.
struct ChunkFacts {
  /// It, or a function written inside it, assigns to a global variable.
  bool may_assign_globals = true;
  /// Nothing is done to KEYS and ARGV but to look up a field, or the size: they go into no variable
  /// and to no function.
  bool only_looks_words_up = false;
  /// The globals that are read, each at least once.
  std::vector<std::string> globals;
};

/// Of the function at the top of the stack, which is left as it is. Where something cannot be told
/// the worst is assumed.
ChunkFacts facts_of(lua_State* lua);

class PrivateArguments {
 public:
  /// Gives the function at the top of the stack an environment of its own, with the globals that it
  /// reads, taken from the table at `globals`. Empty: the script may do more to its words than look
  /// them up, or reach the globals in other ways; it is left as it is.
  static std::optional<PrivateArguments> of(lua_State* lua, const ChunkFacts& facts, int globals);

  void give(lua_State* lua, Words keys, Words args);
  /// After the run: many or long words are not kept until the next one.
  void let_go_of_large(lua_State* lua);
  /// The script is forgotten.
  void forget(lua_State* lua);

 private:
  struct Table {
    const char* name;
    int reference = LUA_NOREF;           ///< in the registry
    std::vector<std::string_view> held;  ///< what is in it: Lua's own bytes
    bool large = false;
  };

  PrivateArguments() = default;
  void make(lua_State* lua, Table& table);
  void fill(lua_State* lua, Table& table, Words words);

  int environment_ = LUA_NOREF;  // in the registry
  Table keys_{.name = "KEYS", .held = {}};
  Table args_{.name = "ARGV", .held = {}};
};

}  // namespace sluice::engine
