/// What the bytecode of a compiled script tells about it.
#pragma once

#include <lua.hpp>
#include <string>
#include <vector>

namespace sluice::engine {

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

}  // namespace sluice::engine
