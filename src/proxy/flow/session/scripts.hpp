/// Bringing a server the scripts that clients have loaded, before it is asked to run them.
#pragma once

#include <string>
#include <string_view>

namespace sluice::proxy {

class Pool;
class Server;
class Upstream;

/// SCRIPT LOAD of the script that an EVALSHA names by `sha`, where the connection's server may lack
/// it; from now on it counts as given over this connection. Empty: it was given before, or nobody
/// has loaded it through the proxy.
std::string take_script_for(Pool& pool, Upstream& upstream, std::string_view sha);

/// The server has lost what it was given.
void forget_given(Server& server);

}  // namespace sluice::proxy
