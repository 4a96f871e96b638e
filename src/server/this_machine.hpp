/// What is for programs and browsers of this machine alone.
#pragma once

#include <string_view>

#include "http/server.hpp"

namespace sluice::server {

/// Others do not reach the listener, neither directly nor by a proxy that is known to be there.
bool serves_this_machine_alone(const http::ServerOptions& http);

/// The connection is of this machine by loopback, no field says that a proxy forwards it for
/// somebody else, and Host says 127.0.0.1, ::1 or localhost. A page of another site whose name was
/// turned to this machine (DNS rebinding) asks by that name, and its browser takes us for that
/// site.
bool is_local(const http::Request& request);
inline constexpr std::string_view only_of_our_pages =
    "a browser's Origin is that of Host, or its Sec-Fetch-Site is same-origin; a proxy in front "
    "passes Host on; a program uses Authorization: Bearer";
inline constexpr std::string_view only_local =
    "without keys this is for http://127.0.0.1 and http://localhost alone, and by no proxy";

}  // namespace sluice::server
