/// The Error of a call that was answered by an error: what was called on which key, what the server
/// says, and whether anything happened. And of a call that no process may make.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/store.hpp"

namespace sluice {

/// "HSET of 'user:42'", as messages call a command or script.
std::string name_of_call(std::string_view verb, std::string_view key);
std::string name_of_command(Words command);

/// `effect`: where the caller knows it. Otherwise that of a command that runs a script is as below.
Error error_of_command(std::string_view reply, Words command, std::optional<Effect> effect = {});

/// `effect`: where the caller knows it. Otherwise it is `none` when the server says that it ran
/// nothing, or when by the text of a script of Sluice no call that writes can have run before it
/// failed; else `unknown`.
Error error_of_script(std::string_view reply, const Script& script, Words keys,
                      std::optional<Effect> effect = {});

/// Whether a script that failed in this line (from 1) may have written before. Goes by its text:
/// true where it cannot tell. `line_was_done`: the calls in that line had succeeded.
bool may_have_written(std::string_view script, std::size_t line, bool line_was_done = false);

/// Whether the server may be away only for a while: not reached, silent, loading, busy, or a
/// replica now.
bool is_outage(const Error& failure) noexcept;

/// Of a Store in a child of fork().
Error closed_by_fork();

}  // namespace sluice
