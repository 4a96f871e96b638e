/// Where a server listens: a host and port, or the path of a unix socket.
#pragma once

#include <sys/socket.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::net {

struct Endpoint {
  std::string host;  ///< a name or a numeric address, without brackets
  std::uint16_t port = 0;
  std::string unix_path;  ///< not empty: a unix socket, host and port do not count

  bool is_unix() const noexcept { return !unix_path.empty(); }
  auto operator<=>(const Endpoint&) const = default;
};

/// "127.0.0.1:6379", "[::1]:6379" or "/run/redis.sock".
std::string to_string(const Endpoint& endpoint);

/// "127.0.0.1:8080", "[::1]:8080", or the path of a unix socket. Throws Error{bad_argument}.
Endpoint read_endpoint(const std::string& word);

/// A socket address, as the kernel wants it.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  int family() const noexcept { return storage.ss_family; }
  bool operator==(const Address& other) const noexcept;
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// Whether `host` is a numeric address, IPv4 or IPv6, which needs no name service.
bool is_numeric(const std::string& host) noexcept;

/// Whether only this machine reaches it: a unix socket, or an address of the loopback.
bool is_of_this_machine(const Endpoint& listen) noexcept;

/// All addresses of the endpoint in the order in which to try them; never empty. Blocks while the
/// name service is asked. Throws Error{connection} for an unknown name, {bad_argument} for a path
/// that is too long for a unix socket.
std::vector<Address> resolve(const Endpoint& endpoint);

}  // namespace sluice::net
