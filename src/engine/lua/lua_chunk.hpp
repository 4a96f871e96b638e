/// What the bytecode of a compiled script tells about it.
#pragma once

#include <lua.hpp>

namespace sluice::engine {

/// Whether the function at the top of the stack, or one written inside it, assigns to a global variable; true also where
/// that cannot be told. The stack is left as it is.
bool may_assign_globals(lua_State* lua);

}  // namespace sluice::engine
