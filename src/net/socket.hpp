/// A stream socket, non-blocking from its birth.
#pragma once

#include "base/descriptor.hpp"
#include "net/endpoint.hpp"
#include "net/transport.hpp"

namespace sluice::net {

/// Of a socket that began to connect and is ready: 0 when it is connected, else the errno.
int connect_error(int descriptor) noexcept;
/// There is something to read, or the end.
bool is_readable(int descriptor) noexcept;
bool is_unix(int descriptor) noexcept;

class Socket final : public Transport {
 public:
  Socket() = default;
  explicit Socket(int descriptor) noexcept : descriptor_(descriptor) {}

  /// Begins to connect; poll for writing, then ask connect_error(). TCP_NODELAY and keep-alive are
  /// on. Throws std::system_error when it is refused at once.
  static Socket start_connect(const Address& address);
  /// A silent peer that has gone is noticed after about a minute: 30 s of silence, then 3 probes of
  /// 10 s.
  void keep_alive() noexcept;

  int connect_error() const noexcept { return net::connect_error(descriptor()); }

  Transfer read_some(std::span<char> into) noexcept override;
  Transfer write_some(std::string_view bytes) noexcept override;
  bool short_read_drains() const noexcept override { return true; }
  int descriptor() const noexcept override { return descriptor_.number(); }
  void shutdown() noexcept override;

 private:
  Descriptor descriptor_;
};

/// As Socket::keep_alive(), of any connection.
void keep_alive(int descriptor) noexcept;

/// The bytes of the peer's address without its port; of IPv6 the first eight, since a host may
/// choose the others as it likes. Empty for a unix socket.
std::string network_of(int descriptor);

/// Whom a server tells apart by it: network_of(), or the peer's user at a unix socket.
std::string origin_of(int descriptor);

/// Where the peer of a connected socket is: "127.0.0.1:4711", "[::1]:4711"; "unix" for a unix
/// socket, empty when it has gone.
std::string peer_of(int descriptor);
/// Where this end of it is.
std::string local_of(int descriptor);

}  // namespace sluice::net
