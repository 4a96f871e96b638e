/// What servers say of their own state, in the very words that they have for it. A script may end
/// with any text, also with one that begins as they do; Store and proxy ask here who has spoken.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "resp/command_table.hpp"

namespace sluice::resp {

enum class ServerState : std::uint8_t {
  moved,       ///< another node has the slot: MOVED
  asking,      ///< another node may have the key: ASK
  moving,      ///< its keys are at two nodes: TRYAGAIN
  down,        ///< CLUSTERDOWN, MASTERDOWN
  loading,     ///< LOADING
  replica,     ///< READONLY of a replica
  demoted,     ///< UNBLOCKED of a server that became a replica, not of CLIENT UNBLOCK
  busy,        ///< a script runs: BUSY
  locked,      ///< NOAUTH, WRONGPASS, NOPERM: the user may not call this
  unscripted,  ///< NOSCRIPT
  refusing,    ///< no write at all is taken: NOREPLICAS, MISCONF
  full,        ///< nothing that needs memory is taken: OOM
};

/// Whether the command runs a script: EVAL, EVALSHA, FCALL and those that only read.
/// Null: of a command that nobody knows.
bool runs_script(const CommandSpec* command) noexcept;

/// The state that an error reply tells of. Nothing: it is another error, of the call or of its
/// script. `of_script`: the call runs one; then the words have to be a server's own.
/// `error`: without the '-' of the wire.
std::optional<ServerState> state_told(std::string_view error, bool of_script) noexcept;

/// Says that a command was not executed, and may be later or elsewhere.
bool is_passing(ServerState state) noexcept;

}  // namespace sluice::resp
