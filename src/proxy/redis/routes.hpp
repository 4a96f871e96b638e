/// How each command of Redis is served: the table of resp and, for what differs from "by the server
/// of its keys", routes.def.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "proxy/protocol/protocol.hpp"
#include "resp/command_table.hpp"

namespace sluice::proxy {

/// Why a command is never served.
enum class Never : std::uint8_t {
  server,   ///< it is for one server: the client must ask that itself
  shared,   ///< it is about the connection, and a server's connection is shared by many clients
  cluster,  ///< it is for a node of Redis Cluster
};

struct RedisRoute {
  Route route = Route::refused;
  SessionVerb verb = SessionVerb::none;
  Merge merge = Merge::none;
  bool needs_consent = false;   ///< of the setting `allow`
  Never never = Never::server;  ///< of Route::refused
};

/// Empty: there is neither a row nor a key. A container without a subcommand is Route::refused: its
/// arity never fits.
std::optional<RedisRoute> route_of(const resp::CommandSpec& spec) noexcept;

/// `allow` has "config|get", "config get" or "config", in any case.
bool is_allowed(std::string_view command, std::span<const std::string> allow);

}  // namespace sluice::proxy
