/// Addresses as the file writes them; of listen and servers exactly as twemproxy reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/config/config.hpp"

namespace sluice::proxy {

/// Decimal digits alone, and not more than `most`.
std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t most) noexcept;

/// "host:port" or "/path"; no host, or *, is any address of this machine. Throws
/// Error{bad_argument}, as all of these: what is wrong, and what is wanted.
net::Endpoint parse_address(std::string_view text);
/// "host:port", or "/path" and perhaps permissions: "/run/proxy.sock 0660".
Listen parse_listen(std::string_view text);
/// "host:port:weight [name]" or "/path:weight [name]".
ServerSettings parse_server(std::string_view text);
/// As twemproxy names a server that has no name; `text` is "host:port:weight" or "/path:weight". It
/// forgets that a path has no port, and keeps the colon.
std::string_view name_of(std::string_view text, const net::Endpoint& endpoint) noexcept;

}  // namespace sluice::proxy
