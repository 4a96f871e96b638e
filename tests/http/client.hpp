/// A client that sends bytes as they are: nothing of the library under test is in it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "base/descriptor.hpp"

namespace sluice::http {

class RawClient {
 public:
  /// `from`: an address of this machine, as 127.0.0.2.
  explicit RawClient(std::uint16_t port, const char* from = nullptr, int receive_buffer = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket") {
    if (receive_buffer != 0)
      ::setsockopt(socket_.number(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (from) {
      ::inet_pton(AF_INET, from, &address.sin_addr);
      check(::bind(socket_.number(), generic(address), sizeof address), "bind");
    }
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    address.sin_port = htons(port);
    check(::connect(socket_.number(), generic(address), sizeof address), "connect");
  }

  int descriptor() const noexcept { return socket_.number(); }

  /// False: the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void finish_sending() { ::shutdown(socket_.number(), SHUT_WR); }

  /// One answer: its head, and as much of a body as Content-Length says. Less, when the server
  /// closes or says nothing for half a minute.
  std::string answer(bool is_head = false) {
    while (input_.find("\r\n\r\n") == std::string::npos)
      if (!more()) return take(input_.size());
    const auto head = input_.find("\r\n\r\n") + 4;
    std::size_t body = 0;
    if (const auto at = input_.find("Content-Length: "); at < head && !is_head)
      body = std::stoul(input_.substr(at + 16));
    while (input_.size() < head + body)
      if (!more()) return take(input_.size());
    return take(head + body);
  }
  /// As answer(), of a whole exchange.
  std::string ask(std::string_view bytes) {
    send(bytes);
    return answer();
  }
  /// All until the server closes.
  std::string rest() {
    while (more()) {
    }
    return take(input_.size());
  }
  /// Up to and with `end`, or less when the server closes.
  std::string until(std::string_view end) {
    while (input_.find(end) == std::string::npos)
      if (!more()) return take(input_.size());
    return take(input_.find(end) + end.size());
  }
  /// Whether the server has closed, and nothing is left to read; waits for it.
  bool is_closed() { return rest().empty() && closed_; }
  /// Whether something can be read at this moment.
  bool has_input() const {
    pollfd one{socket_.number(), POLLIN, 0};
    return !input_.empty() || ::poll(&one, 1, 0) > 0;
  }

 private:
  static const sockaddr* generic(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
  }
  static void check(int result, const char* call) {
    if (result != 0) throw std::system_error{errno, std::generic_category(), call};
  }
  std::string take(std::size_t bytes) {
    auto taken = input_.substr(0, bytes);
    input_.erase(0, bytes);
    return taken;
  }
  bool more() {
    pollfd one{socket_.number(), POLLIN, 0};
    if (::poll(&one, 1, 30'000) <= 0) return false;
    char buffer[16384];
    const auto got = ::recv(socket_.number(), buffer, sizeof buffer, 0);
    if (got <= 0) {
      closed_ = true;
      return false;
    }
    input_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }

  Descriptor socket_;
  std::string input_;
  bool closed_ = false;
};

}  // namespace sluice::http
