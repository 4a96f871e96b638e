/// A socket that waits for clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "net/endpoint.hpp"
#include "net/socket.hpp"

namespace sluice::net {

struct ListenOptions {
  int backlog = 512;
  /// SO_REUSEPORT: other sockets of this user may listen on it, and the kernel spreads the clients.
  bool share_port = false;
  bool first = false;  ///< none may listen there yet, not even one that shares the port
  std::optional<unsigned> permissions;  ///< of a unix socket
  /// Bytes that the kernel takes for a client beyond what its window lets go; 0: some megabytes,
  /// which a client that does not read would hold. Not of a unix socket.
  std::size_t most_unsent = 0;
};

class ServerSocket {
 public:
  ServerSocket() = default;
  /// Takes over a descriptor that listens already.
  explicit ServerSocket(int descriptor) noexcept : socket_(descriptor) {}

  /// A unix socket that is left over from a process that is gone is replaced. Throws
  /// std::system_error that names the endpoint (address in use, no permission), Error for an
  /// unknown host.
  static ServerSocket open(const Endpoint& endpoint, const ListenOptions& options);
  /// Other options for one that listens already: backlog and permissions. What the kernel refuses
  /// stays as it was.
  void adjust(const Endpoint& endpoint, const ListenOptions& options) const noexcept;
  /// Another descriptor of the same queue of clients.
  ServerSocket duplicate() const;

  enum class Outcome { accepted, none, out_of_descriptors, failed };
  struct Accepted {
    Outcome outcome;
    Socket socket;
    int error = 0;
  };
  /// Never blocks. TCP_NODELAY is on.
  Accepted accept() const noexcept;

  int descriptor() const noexcept { return socket_.descriptor(); }
  /// Of TCP, also where 0 was asked for; 0: it has none.
  std::uint16_t port() const noexcept;

 private:
  Socket socket_;
};

}  // namespace sluice::net
