/// A server that answers with bytes as they are, right or wrong.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"

namespace sluice::test {

class RawServer {
 public:
  /// What a request is answered with; then the connection is closed, or is left open until the end
  /// of the test, as by a server that is slow.
  struct Script {
    std::string bytes;
    bool closes = true;
    bool repeats = false;  ///< the last bytes, until the client has had enough
  };
  using Answer = std::function<Script(const std::string& request)>;

  explicit RawServer(Answer answer) : answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (::bind(listener_.number(), name, size) != 0 || ::listen(listener_.number(), 64) != 0 ||
        ::getsockname(listener_.number(), name, &size) != 0)
      throw std::system_error{errno, std::generic_category(), "listen"};
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread{[this](const std::stop_token& stop) { serve(stop); }};
  }

  std::uint16_t port() const noexcept { return port_; }
  std::string url(std::string_view path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string{path};
  }
  int asked() const noexcept { return asked_; }

 private:
  bool readable(int descriptor, const std::stop_token& stop) const {
    pollfd one{descriptor, POLLIN, 0};
    while (!stop.stop_requested())
      if (::poll(&one, 1, 20) > 0) return true;
    return false;
  }

  void serve(const std::stop_token& stop) {
    while (readable(listener_.number(), stop)) {
      Descriptor client{::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC), "accept"};
      const auto request = request_of(client.number(), stop);
      ++asked_;
      const auto script = answer_(request);
      const bool is_sent = send(client.number(), script.bytes);
      while (is_sent && script.repeats && !stop.stop_requested())
        if (!send(client.number(), script.bytes)) break;
      if (!script.closes) kept_.push_back(std::move(client));
    }
  }

  std::string request_of(int client, const std::stop_token& stop) const {
    std::string request;
    char buffer[4096];
    for (;;) {
      const auto end = request.find("\r\n\r\n");
      if (end != std::string::npos) {
        const auto at = request.find("Content-Length: ");
        const auto body = at < end ? std::stoul(request.substr(at + 16)) : 0;
        if (request.size() >= end + 4 + body) return request;
      }
      if (!readable(client, stop)) return request;
      const auto got = ::recv(client, buffer, sizeof buffer, 0);
      if (got <= 0) return request;
      request.append(buffer, static_cast<std::size_t>(got));
    }
  }

  static bool send(int client, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  const Answer answer_;
  Descriptor listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
  std::uint16_t port_ = 0;
  std::atomic<int> asked_{0};
  std::vector<Descriptor> kept_;  // of the thread
  std::jthread thread_;
};

}  // namespace sluice::test
