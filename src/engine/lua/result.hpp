/// What a script returns, as a reply.
#pragma once

#include <lua.hpp>
#include <string>
#include <string_view>

#include "engine/core/reply.hpp"

namespace sluice::engine {

/// Replies the value at the top of the stack and pops it, as Redis converts: a number becomes an
/// integer (truncated), a table an array up to its first nil, unless it has a field err, ok,
/// double, map, set, big_number or verbatim_string; true is 1 and false null, unless the script has
/// asked for RESP3.
void reply_result(lua_State* lua, Reply& reply, int protocol);

/// A status or error is one line: line ends become blanks.
std::string one_line(std::string_view text);

}  // namespace sluice::engine
