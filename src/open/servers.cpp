#include "open/servers.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <system_error>

#include "net/socket.hpp"
#include "open/settings.hpp"

namespace sluice {
namespace {

net::Endpoint dialled(const topology::Endpoint& server) {
  return {.host = server.host, .port = server.port, .unix_path = {}};
}

std::vector<topology::Endpoint> endpoints(const Url& url, std::uint16_t usual_port) {
  std::vector<topology::Endpoint> all;
  for (const auto& [host, port] : url.servers) all.push_back({host, port.value_or(usual_port)});
  return all;
}

std::unique_ptr<Store> open_with(redis::RedisOptions options, const topology::Endpoint& server) {
  options.endpoint = dialled(server);
  return redis::open_redis(std::move(options));
}

/// Ends with the handshake: the server says nothing before it is greeted.
std::optional<WallTime> shake_hands(net::Transport& connection, SteadyTime until) {
  std::array<char, net::Transport::whole_read> buffer;
  while (true) {
    const auto transfer = connection.read_some(buffer);
    if (connection.is_established()) return connection.certificate_ends();
    const bool goes_on = transfer.outcome == net::Transfer::Outcome::would_block;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - system_clock().steady()).count();
    if (!goes_on || left <= 0)
      throw Error{goes_on ? Errc::timeout : Errc::connection, "the TLS handshake did not end"};
    const auto wants = connection.wants_to_read();
    pollfd ready{connection.descriptor(),
                 static_cast<short>((wants.read ? POLLIN : 0) | (wants.write ? POLLOUT : 0)), 0};
    ::poll(&ready, 1, static_cast<int>(left));
  }
}

}  // namespace

Servers::Servers(std::string_view text, const OpenOptions& options) {
  const Url url = parse_url(text);
  if (url.scheme.ends_with("+sentinel")) {
    kind_ = Kind::sentinels;
    auto found = sentinel_options(url, options);
    server_ = std::move(found.server);
    sentinel_ = server_;
    sentinel_.kind = redis::ServerKind::sentinel;
    sentinel_.user = found.sentinel_user;
    sentinel_.password = found.sentinel_password;
    sentinel_.tls = found.sentinel_tls;
    sentinel_.database = 0;
    seeds_ = endpoints(url, 26379);
    master_name_ = found.name;
  } else if (url.scheme.ends_with("+cluster")) {
    kind_ = Kind::cluster;
    server_ = cluster_options(url, options).node;
    server_.kind = redis::ServerKind::cluster_node;
    seeds_ = endpoints(url, 6379);
  } else if (url.has_authority && !url.servers.front().host.empty()) {
    server_ = server_options(url, options);
    server_.tls = tls_client(url);
    seeds_ = endpoints(url, 6379);
  }
}

std::unique_ptr<Store> Servers::open_server(const topology::Endpoint& server) const {
  return open_with(server_, server);
}

std::unique_ptr<Store> Servers::open_sentinel(const topology::Endpoint& sentinel) const {
  return open_with(sentinel_, sentinel);
}

std::optional<WallTime> Servers::certificate_ends(const topology::Endpoint& server) const {
  if (!server_.tls) return std::nullopt;
  const auto until = Clock::add(system_clock().steady(), server_.connect_timeout);
  std::optional<Error> failure;
  const net::TlsFailure failed = [&failure](const Error& why) { failure = why; };
  try {
    auto socket = net::Socket::start_connect(net::resolve(dialled(server)).front());
    const auto connection = server_.tls->connect(std::move(socket), server.host, failed);
    return shake_hands(*connection, until);
  } catch (const Error&) {
    if (failure) throw Error{*failure};
    throw;
  } catch (const std::system_error& error) {
    throw Error{Errc::connection, error.what()};
  }
}

}  // namespace sluice
