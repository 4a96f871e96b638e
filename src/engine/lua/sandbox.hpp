/// The world that a script sees: Redis's globals, which no script can change.
///
/// Stock Lua has no read-only tables. A protected table is therefore an empty one (a veil) with a
/// metatable that looks into the real one and refuses to write. The functions that pass metatables
/// by (rawset, next, table.insert ...) know the veils. Scripts find no way to a real table.
#pragma once

#include <lua.hpp>

namespace sluice::engine {

/// Opens the base libraries in a fresh state, without what reaches outside or could harm, and makes
/// the table of globals ready. Leaves the real table of globals on the stack for the caller to
/// fill.
void open_sandbox(lua_State* lua);

/// Enters the table at the top of the stack, veiled, as a field of the table below it.
void set_protected(lua_State* lua, const char* name);

/// Hides the globals behind a veil. REQUIRES: they are at the top of the stack, where they stay.
void close_sandbox(lua_State* lua);

}  // namespace sluice::engine
