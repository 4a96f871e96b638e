/// A port of 127.0.0.1 that answers nobody: the kernel drops what comes, as a firewall does.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "base/descriptor.hpp"

namespace sluice::test {

/// Listens, accepts nobody, and has its queue full: of a listener with a full queue Linux drops the
/// first packet of each connection.
class SilentPort {
 public:
  SilentPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (::bind(listener_.number(), name, size) != 0 || ::listen(listener_.number(), 0) != 0 ||
        ::getsockname(listener_.number(), name, &size) != 0)
      throw std::system_error{errno, std::generic_category(), "listen"};
    port_ = ntohs(address.sin_port);
    for (int i = 0; i < 4; ++i) {
      queued_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                           "socket");
      [[maybe_unused]] const int begun = ::connect(queued_.back().number(), name, size);
    }
  }
  std::uint16_t port() const noexcept { return port_; }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

 private:
  Descriptor listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
  std::vector<Descriptor> queued_;
  std::uint16_t port_ = 0;
};

}  // namespace sluice::test
