/// The Error of a call that was answered by an error: what was called on which key, what the server
/// says, and whether anything happened.
#pragma once

#include <optional>
#include <string_view>

#include "sluice/store.hpp"

namespace sluice {

Error error_of_command(std::string_view reply, Words command);

/// `effect`: where the caller knows it. Otherwise it is `none` when no call that writes can have
/// run before the line that failed, else `unknown`.
Error error_of_script(std::string_view reply, const Script& script, Words keys,
                      std::optional<Effect> effect = {});

/// Whether a script that failed in this line (from 1) may have written before. Goes by its text:
/// true where it cannot tell.
bool may_have_written(std::string_view script, std::size_t line);

}  // namespace sluice
