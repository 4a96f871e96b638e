/// What one client, and all of them together, may take of a server.
#pragma once

#include <chrono>
#include <cstddef>

namespace sluice::http {

struct Limits {
  std::size_t head = std::size_t{8} << 10;      ///< bytes of request line and fields: 431 beyond
  std::size_t fields = 64;                      ///< 431 beyond
  std::size_t body = std::size_t{16} << 10;     ///< bytes: 413 beyond
  std::size_t pipelined = 16;                   ///< requests under way; the next is not read
  std::size_t unsent = std::size_t{64} << 10;   ///< bytes: a client with more is not read
  std::size_t connections = 50'000;             ///< of all clients
  std::size_t connections_of_a_client = 1'000;  ///< of an IPv4 address or an IPv6 /64

  std::chrono::seconds head_time{
      5};  ///< from the first byte of a request to the end of its head; and for TLS
  std::chrono::seconds body_time{5};  ///< from there to the end of its body
  std::chrono::seconds idle_time{60};
  std::chrono::seconds send_time{30};     ///< to take what it was sent
  std::chrono::seconds comment_time{15};  ///< between comments in a silent event stream
};

}  // namespace sluice::http
