/// From the configuration file to its value. What nutcracker 0.5.0 takes or refuses, this takes or
/// refuses, and it means the same; beyond that there are our own settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/tls.hpp"
#include "proxy/config/config.hpp"

namespace sluice::proxy::config {

/// `file` is its name for messages. Throws Error{bad_argument}: "file:line: what is wrong; what to
/// do".
Config read(std::string_view yaml, std::string_view file);

/// Reads the file. Throws also for one that cannot be read or is too large.
Config load(const std::string& path);

/// load(), and this machine must know the names that pools listen at, as `nutcracker -t` wants it.
/// Blocks while it asks the name service.
Config check(const std::string& path);

/// Decimal digits alone, and not more than `most`.
std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t most) noexcept;

net::TlsFiles files_of(const TlsSettings& settings);

// Addresses as the file writes them. They throw Error{bad_argument}: what is wrong, what is wanted.

/// "host:port" of a name or a numeric address, "[address]:port" of IPv6, or "/path"; no host, or *,
/// is any address of this machine.
net::Endpoint parse_address(std::string_view text);
/// "host:port", or "/path" and perhaps permissions: "/run/proxy.sock 0660". As twemproxy, it takes
/// anything for a host that is not empty.
Listen parse_listen(std::string_view text);
/// "host:port:weight [name]" or "/path:weight [name]"; the host as twemproxy takes it.
ServerSettings parse_server(std::string_view text);
/// The same again.
std::string to_string(const ServerSettings& server);
/// twemproxy's name for a server without one: "host:port", of port 11211 "host", of a path "/path:"
/// with the colon. `text` is "host:port:weight" or "/path:weight".
std::string_view name_of(std::string_view text, const net::Endpoint& endpoint) noexcept;

}  // namespace sluice::proxy::config
