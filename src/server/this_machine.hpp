/// What is for programs and browsers of this machine alone.
#pragma once

#include "http/server.hpp"

namespace sluice::server {

/// Others do not reach the listener, neither directly nor by a proxy.
bool serves_this_machine_alone(const http::ServerOptions& http);

/// Host says 127.0.0.1, ::1 or localhost. A page of another site whose name was turned to this
/// machine (DNS rebinding) asks by that name, and its browser takes us for that site.
bool names_this_machine(const http::Request& request);

}  // namespace sluice::server
