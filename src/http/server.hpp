/// An HTTP/1.1 server: loops, a table of routes, limits against hostile clients.
///
///     Routes routes;
///     routes.add({.method = "GET", .path = "/hello", .operation = "hello", ...
///                 .handler = [](Request&&, Responder&& respond) {
///                   respond.send(json(200, ...));
///                 }});
///     Server server{system_clock(), std::move(routes),
///                   {.listen = {.host = "127.0.0.1", .port = 8080}}};
///     ...
///     server.stop(20s);
///
/// Threads: any; a handler runs in the thread of a loop and must not call stop().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/limits.hpp"
#include "http/openapi.hpp"
#include "http/routes.hpp"
#include "net/endpoint.hpp"
#include "net/tls.hpp"
#include "sluice/clock.hpp"

namespace sluice::http {

struct Shared;
class Worker;

struct ServerOptions {
  net::Endpoint listen{.host = "127.0.0.1", .port = 0, .unix_path = {}};  ///< port 0: a free one
  std::size_t loops = 0;                                                  ///< 0: one a core
  Limits limits;
  std::optional<net::TlsContext> tls;  ///< none: clients speak plainly
  /// Networks of proxies in front, whose X-Forwarded-For is believed.
  std::vector<std::string> trusted;
  /// Networks of balancers that begin each connection with the PROXY protocol, version 2.
  std::vector<std::string> proxy_protocol;
  /// Fields by which clients say who they are, for Vary. An answer without a Cache-Control of its
  /// own is kept by nobody (no-store); over TLS browsers are told to come by TLS (HSTS).
  std::string vary;
  ApiDocument api;
  /// Asked in the thread of a loop by /readyz: why no clients should come now; empty: they may.
  std::function<std::string()> not_ready_because;
  /// The same of what a person is to know; clients may come.
  std::function<std::string()> trouble;
};

/// Beside the routes it is given it has /openapi.json, /livez (200 while it runs) and /readyz (503
/// from the beginning of stop()).
class Server {
 public:
  /// It serves when this returns. Throws std::system_error (address in use), Error{bad_argument}.
  Server(Clock& clock, Routes routes, ServerOptions options);
  /// Ends at once.
  ~Server();

  std::uint16_t port() const noexcept { return port_; }
  bool is_ready() const noexcept { return is_ready_.load(std::memory_order_acquire); }

  /// Not ready; after `notice`, in which balancers see it, no client is accepted, event streams end
  /// and answers close their connections; what was asked is answered. Returns when the last client
  /// has gone, or after `within`. Once.
  void stop(std::chrono::nanoseconds within,
            std::chrono::nanoseconds notice = std::chrono::seconds{5});

  /// Certificates for connections from now on; those that are there keep theirs. A server that was
  /// made without them takes none.
  void replace_tls(const net::TlsContext& tls);

  struct Load {
    std::int64_t connections = 0;  ///< that are open
    std::uint64_t requests = 0;    ///< answered since the beginning
  };
  Load load() const;
  /// For Prometheus: requests by route and code, connections, refusals by cause.
  std::string metrics() const;

 private:
  std::unique_ptr<Shared> shared_;
  std::uint16_t port_ = 0;
  std::atomic<bool> is_ready_{true};
  std::string document_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace sluice::http
