/// A socket that listens, for the small services beside the data path.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "net/endpoint.hpp"
#include "net/server_socket.hpp"

namespace sluice::proxy::process {

/// Owns the descriptor; a unix socket's file goes with it.
class ListeningSocket {
 public:
  /// Takes over a socket that an upgrade handed on.
  explicit ListeningSocket(net::ServerSocket listener) noexcept : listener_(std::move(listener)) {}
  ListeningSocket(ListeningSocket&& other) noexcept
      : listener_(std::move(other.listener_)), path_(std::exchange(other.path_, {})) {}
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  /// Non-blocking. A unix socket gets `permissions` from its birth; a socket file without a
  /// listener is replaced. Throws Error{in_use} when another process has the address,
  /// {bad_argument} or {connection} when it cannot be had.
  static ListeningSocket open(const net::Endpoint& endpoint, unsigned permissions = 0600);

  int descriptor() const noexcept { return listener_.descriptor(); }
  /// Of a TCP socket: the port, also where the caller asked for 0.
  std::uint16_t port() const noexcept { return listener_.port(); }
  /// From now on the destructor removes this file.
  void take_path(std::string path) { path_ = std::move(path); }
  /// Another process listens here too: the file stays.
  void hand_on() noexcept { path_.clear(); }

 private:
  net::ServerSocket listener_;
  std::string path_;
};

/// How a service gets its socket: opened, or inherited from the predecessor in an upgrade. `what`
/// is "statistics", "metrics" or "admin".
using OpenSocket = std::function<ListeningSocket(std::string_view what, const net::Endpoint&)>;
/// ListeningSocket::open.
ListeningSocket open_socket(std::string_view what, const net::Endpoint& endpoint);

/// 127.0.0.0/8, ::1 or a unix socket: only this machine reaches it. Resolves the name.
bool is_local(const net::Endpoint& endpoint);

}  // namespace sluice::proxy::process
