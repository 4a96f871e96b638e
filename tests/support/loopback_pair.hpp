/// Both ends of a connection over loopback. The end of `server` resets it; what was sent before
/// arrives before.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <system_error>

#include "net/socket.hpp"

namespace sluice::test {

struct LoopbackPair {
  LoopbackPair() {
    const auto checked = [](int result, const char* what) {
      if (result < 0) throw std::system_error{errno, std::generic_category(), what};
      return result;
    };
    const Descriptor listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    checked(::bind(listener.number(), name, size), "bind");
    checked(::listen(listener.number(), 1), "listen");
    checked(::getsockname(listener.number(), name, &size), "getsockname");
    client = net::Socket{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
    checked(::connect(client.descriptor(), name, size), "connect");
    checked(::fcntl(client.descriptor(), F_SETFL, O_NONBLOCK), "fcntl");
    server = net::Socket{checked(
        ::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC), "accept")};
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    checked(::setsockopt(server.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once),
            "setsockopt");
  }

  net::Socket client;
  net::Socket server;
};

}  // namespace sluice::test
