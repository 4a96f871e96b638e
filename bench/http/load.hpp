/// Clients of an HTTP server: honest ones that ask as fast as they are answered, and others.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/descriptor.hpp"

namespace sluice::bench {

inline const std::string asked =
    "GET /refusal HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\n\r\n";

/// From 127.0.0.FROM, so that a server's limit of one address is not met.
inline Descriptor connect(std::uint16_t port, std::size_t from = 1) {
  Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
  const auto address_of = [](std::size_t host, std::uint16_t at) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(static_cast<std::uint32_t>(INADDR_LOOPBACK + host - 1));
    address.sin_port = htons(at);
    return address;
  };
  const auto ours = address_of(from, 0);
  const auto theirs = address_of(1, port);
  const auto generic = [](const sockaddr_in& at) { return reinterpret_cast<const sockaddr*>(&at); };
  if (::bind(socket.number(), generic(ours), sizeof ours) != 0 ||
      ::connect(socket.number(), generic(theirs), sizeof theirs) != 0)
    throw std::system_error{errno, std::generic_category(), "connect"};
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

/// How many bytes an answer has.
inline std::size_t ask_once(int socket) {
  static_cast<void>(::send(socket, asked.data(), asked.size(), MSG_NOSIGNAL));
  std::array<char, 4096> answer;
  const auto got = ::recv(socket, answer.data(), answer.size(), 0);
  if (got <= 0) throw std::system_error{errno, std::generic_category(), "no answer"};
  return static_cast<std::size_t>(got);
}

struct Figures {
  std::size_t requests = 0;
  double p99_us = 0;
};

/// `count` honest clients for so long. `meanwhile` is called about every millisecond.
template <class Meanwhile>
Figures load(std::uint16_t port, std::size_t count, std::chrono::milliseconds duration,
             Meanwhile meanwhile) {
  using Time = std::chrono::steady_clock;  // of a program that measures
  struct Client {
    Descriptor socket;
    Time::time_point since;
  };
  std::vector<Client> clients;
  const Descriptor epoll{::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"};
  std::vector<double> times;
  const auto ask = [](Client& client) {
    client.since = Time::now();
    static_cast<void>(::send(client.socket.number(), asked.data(), asked.size(), MSG_NOSIGNAL));
  };
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back({connect(port), {}});
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    ::epoll_ctl(epoll.number(), EPOLL_CTL_ADD, clients.back().socket.number(), &event);
  }
  for (auto& client : clients) ask(client);
  const auto end = Time::now() + duration;
  auto next = Time::now();
  std::array<epoll_event, 64> events;
  std::array<char, 4096> answer;
  while (Time::now() < end) {
    if (Time::now() >= next) {
      next = Time::now() + std::chrono::milliseconds{1};
      meanwhile();
    }
    const int ready =
        ::epoll_wait(epoll.number(), events.data(), static_cast<int>(events.size()), 1);
    for (int i = 0; i < ready; ++i) {
      auto& client = clients[events[static_cast<std::size_t>(i)].data.u64];
      if (::recv(client.socket.number(), answer.data(), answer.size(), 0) <= 0)
        throw std::system_error{errno, std::generic_category(), "an honest client is not answered"};
      times.push_back(
          std::chrono::duration<double, std::micro>(Time::now() - client.since).count());
      ask(client);
    }
  }
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() * 99 / 100);
  std::ranges::nth_element(times, at);
  return {times.size(), *at};
}

}  // namespace sluice::bench
