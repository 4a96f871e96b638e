/// The table `redis` of a script.
#pragma once

#include <lua.hpp>

#include "engine/lua/script_run.hpp"

namespace sluice::engine {

/// Leaves the table on the stack. Its functions use `run`, which has to outlive the state.
void push_redis_library(lua_State* lua, ScriptRun& run);

}  // namespace sluice::engine
