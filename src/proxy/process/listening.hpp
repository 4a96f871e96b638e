/// A socket that listens, for the small services beside the data path.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "net/endpoint.hpp"
#include "net/server_socket.hpp"

namespace sluice::proxy {

/// Owns the descriptor; a unix socket's file goes with it.
class Listening {
 public:
  /// Takes over one that listens already, as an upgrade hands it on.
  explicit Listening(net::ServerSocket listener) noexcept : listener_(std::move(listener)) {}
  Listening(Listening&& other) noexcept
      : listener_(std::move(other.listener_)), path_(std::exchange(other.path_, {})) {}
  Listening& operator=(Listening&&) = delete;
  ~Listening();

  /// Non-blocking. A unix socket gets `permissions` from its birth; a file that nobody listens on
  /// any more is replaced.
  /// Throws Error{in_use} when another has the address, {bad_argument} or {connection} when it
  /// cannot be had.
  static Listening open(const net::Endpoint& endpoint, unsigned permissions = 0600);

  int descriptor() const noexcept { return listener_.descriptor(); }
  /// Of a TCP socket: the port, also when 0 was asked for.
  std::uint16_t port() const;
  /// It is ours, and the file goes with it.
  void take_path(std::string path) { path_ = std::move(path); }
  /// Another process has it now: the file stays.
  void hand_on() noexcept { path_.clear(); }

 private:
  net::ServerSocket listener_;
  std::string path_;
};

/// How a service gets its socket; `what` names the service ("statistics", "metrics", "admin"). One
/// that was started by an upgrade gives the socket that its predecessor handed on.
using OpenListening = std::function<Listening(std::string_view what, const net::Endpoint&)>;
/// The plain way: Listening::open.
Listening open_listening(std::string_view what, const net::Endpoint& endpoint);

/// 127.0.0.0/8, ::1 or a unix socket: whoever reaches it is on this machine. Resolves the name.
bool is_local(const net::Endpoint& endpoint);

/// "/path", "host:port", "[::1]:port". Throws Error{bad_argument}.
net::Endpoint parse_endpoint(std::string_view text);

}  // namespace sluice::proxy
