/// Which addresses lie in the public internet.
#pragma once

#include <sys/socket.h>

#include <string>

namespace sluice::server {

/// False: the machine itself, a private or shared network (RFC 1918, 4193, 6598), link-local (there
/// clouds keep their credentials), multicast, documentation, what is reserved; IPv6 that carries an
/// IPv4 address (mapped, NAT64, 6to4, Teredo), which would be a way around the former; and what is
/// no IP address.
bool is_public(const sockaddr* address) noexcept;

/// "127.0.0.1"; says so where it is no IP address.
std::string text_of(const sockaddr* address);

}  // namespace sluice::server
