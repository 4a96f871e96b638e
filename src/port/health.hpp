/// What balancers and Prometheus ask of a port, over HTTP at an address of its own: /livez, /readyz
/// and /metrics.
#pragma once

#include <string>

#include "http/server.hpp"
#include "net/endpoint.hpp"

namespace sluice::port {

class Port;

class Health {
 public:
  /// `port` outlives it. Throws as http::Server.
  Health(Port& port, const net::Endpoint& listen);

  std::uint16_t port() const noexcept { return server_.port(); }

 private:
  http::Server server_;
};

}  // namespace sluice::port
