/// Administration in RESP, for `sluice proxy ...`, redis-cli and any Redis client: on a unix socket
/// that only the proxy's user can open, or on a loopback port. HELP prints the table of commands.
/// Lists are arrays; STATS and CLIENTS reply JSON in one string.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "proxy/process/management_server.hpp"
#include "proxy/watch/registry.hpp"

namespace sluice::proxy::process {

/// What the process does when it is asked. Called on the thread of the ManagementServer: short. An
/// empty one answers -ERR. One that throws Error answers -ERR and its message.
struct AdminActions {
  std::function<std::string()> clients;  ///< JSON array of the clients that are connected
  std::function<std::string()> reload;   ///< reads the file again; what changed, in a line or more
  std::function<std::string()> check_config;  ///< as reload, but changes nothing
  std::function<std::string()> upgrade;       ///< starts the binary anew and hands the sockets on
  std::function<std::string(std::span<const std::string_view>)>
      move;                     ///< what MOVE says; how far it is
  std::function<void()> drain;  ///< begins to end; the process exits when it is done
  std::function<int()> log_level;
  std::function<void(int)> set_log_level;
};

struct AdminCall;

/// One row of the table of commands: of HELP, and of `sluice proxy VERB`.
struct AdminCommand {
  std::string_view name;  ///< upper case; may be two words
  std::string_view verb;  ///< on the command line; empty: it has none there
  std::string_view help;
  void (*run)(const AdminCall&);
  std::string_view argument{}, argument_help{};  ///< one, which may be left out; empty: none
  bool replies_json = false;
  std::size_t more_arguments = 0;  ///< behind that one
};
std::span<const AdminCommand> admin_commands() noexcept;

/// `registry` and `actions` outlive the sessions.
std::unique_ptr<Conversation> admin_conversation(watch::Registry& registry,
                                                 const AdminActions& actions);

/// The endpoint of the setting `admin:`. Throws Error{bad_argument} for an address that others than
/// this machine reach.
Service admin_service(const std::string& address, watch::Registry& registry,
                      const AdminActions& actions, const OpenSocket& open = open_socket);

}  // namespace sluice::proxy::process
