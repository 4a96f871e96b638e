#include "support/free_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/descriptor.hpp"

namespace sluice::test {
namespace {

// Below those of outgoing connections (32768 and up on Linux), and of the ports that nutcracker
// listens on by default.
constexpr std::uint16_t first_port = 10'000;
constexpr std::uint16_t ports = 12'000;

bool is_free(std::uint16_t port) {
  const Descriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(listener.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

/// A socket of this name without a file: the kernel lets one process have it, and takes it back
/// when that one ends.
Descriptor claim(std::uint16_t port) {
  Descriptor held{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"};
  const auto name = "sluice-test-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(held.number(), reinterpret_cast<sockaddr*>(&address), size) != 0) held.close();
  return held;
}

}  // namespace

std::uint16_t free_port() {
  static std::mutex mutex;
  static std::uint32_t next = std::random_device{}() % ports;
  static std::vector<Descriptor> claims;
  const std::lock_guard lock{mutex};
  for (std::uint16_t tries = 0; tries < ports; ++tries) {
    const auto port = static_cast<std::uint16_t>(first_port + next++ % ports);
    auto held = claim(port);
    if (!held.is_open() || !is_free(port)) continue;
    claims.push_back(std::move(held));
    return port;
  }
  throw std::runtime_error{"no port from 10000 to 21999 of 127.0.0.1 is free"};
}

}  // namespace sluice::test
