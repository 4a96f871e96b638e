/// What a line of the setting `commands` says of a command that no table knows.
#pragma once

#include <optional>
#include <string_view>

#include "proxy/config/config.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy::config {

inline constexpr std::string_view command_rule_form =
    "where its keys are: 'key 1', 'keys 1 -1 2' (first, last, step), 'count 2' (a number, then as "
    "many keys), 'key 1 count 2', 'behind KEYS', 'none', or 'whole' if it looks at all keys; then "
    "perhaps 'read' or 'blocking'";

/// The row of the rule; its name and keyword view `rule`. Empty: the text has not the form above.
std::optional<resp::CommandSpec> spec_of(const CommandRule& rule);

/// It looks at all keys of a server.
bool is_whole(const CommandRule& rule) noexcept;

/// Whether the rule, whose name may end in '*', is for this command.
bool is_rule_for(const CommandRule& rule, std::string_view command) noexcept;

}  // namespace sluice::proxy::config
