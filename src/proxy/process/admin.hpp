/// Administration in RESP, for `sluice proxy ...`, redis-cli and any Redis client: on a unix socket
/// that the user of the proxy alone can open, or on a loopback port. The commands are a table; HELP
/// prints it.
///
/// Reply: lists are arrays; STATS and CLIENTS are JSON in one string. Errors: -ERR, with a sentence
///   that says why.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "proxy/process/side_server.hpp"
#include "proxy/watch/registry.hpp"

namespace sluice::proxy {

/// What the process does when it is asked. Called on the thread of the SideServer: short. An empty
/// one answers -ERR. One that throws Error answers -ERR and its message.
struct AdminActions {
  std::function<std::string()> clients;  ///< JSON array of the clients that are connected
  std::function<std::string()> reload;   ///< reads the file again; what changed, in a line or more
  std::function<std::string()> check_config;  ///< as reload, but changes nothing
  std::function<std::string()> upgrade;       ///< starts the binary anew and hands the sockets on
  std::function<void()> drain;                ///< begins to end; the process exits when it is done
  std::function<int()> log_level;
  std::function<void(int)> set_log_level;
};

/// `registry` and `actions` outlive the sessions.
std::unique_ptr<Session> admin_session(Registry& registry, const AdminActions& actions);

/// The endpoint of the setting `admin:`. Throws Error{bad_argument} for an address that others than
/// this machine reach.
Door admin_door(const std::string& address, Registry& registry, const AdminActions& actions,
                const OpenListening& open = open_listening);

}  // namespace sluice::proxy
