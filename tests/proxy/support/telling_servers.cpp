#include "proxy/support/telling_servers.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "resp/request_parser.hpp"

namespace sluice::test {
namespace {

constexpr int turn_ms = 20;  // how soon the end is noticed

/// A connection of a proxy, and what of its requests has come.
struct Connection {
  Descriptor socket;
  std::size_t server;
  std::string input;

  /// False: the other side is gone.
  bool answer() {
    char bytes[65536];
    const auto got = ::recv(socket.number(), bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    input.append(bytes, static_cast<std::size_t>(got));
    const auto reply = ':' + std::to_string(server) + "\r\n";
    std::string output;
    std::string_view rest = input;
    resp::RequestParser parser;
    while (!rest.empty() && parser.parse(rest) == resp::RequestParser::State::complete) {
      rest.remove_prefix(parser.size());
      output += reply;
    }
    input.erase(0, input.size() - rest.size());
    return ::send(socket.number(), output.data(), output.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(output.size());
  }
};

/// The address as it came to be; empty: it is taken.
std::string listen_at(const std::string& wanted, int socket) {
  sockaddr_in address{};
  const auto colon = wanted.find(':');
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, wanted.substr(0, colon).c_str(), &address.sin_addr);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(wanted.substr(colon + 1))));
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket, name, size) != 0 || ::listen(socket, SOMAXCONN) != 0 ||
      ::getsockname(socket, name, &size) != 0)
    return "";
  return wanted.substr(0, colon + 1) + std::to_string(ntohs(address.sin_port));
}

std::string listen_at_path(const std::string& path, int socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket, SOMAXCONN) != 0)
    return "";
  return path;
}

}  // namespace

TellingServers::TellingServers(const std::vector<std::string>& wanted) {
  for (const auto& each : wanted) {
    const bool is_path = each.starts_with('/');
    Descriptor socket{::socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                      "socket"};
    auto address = is_path ? listen_at_path(directory_.str() + each, socket.number())
                           : listen_at(each, socket.number());
    if (address.empty()) continue;
    addresses_.push_back(std::move(address));
    listeners_.push_back(std::move(socket));
  }
  thread_ = std::thread{[this] { serve(); }};
}

TellingServers::~TellingServers() {
  done_ = true;
  thread_.join();
}

void TellingServers::serve() {
  std::vector<Connection> connections;
  std::vector<pollfd> polled;
  while (!done_) {
    polled.clear();
    for (const auto& listener : listeners_) polled.push_back({listener.number(), POLLIN, 0});
    for (const auto& each : connections) polled.push_back({each.socket.number(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), turn_ms) <= 0) continue;
    for (auto i = connections.size(); i-- > 0;) {
      if (polled[listeners_.size() + i].revents == 0 || connections[i].answer()) continue;
      std::swap(connections[i], connections.back());
      connections.pop_back();
    }
    for (std::size_t i = 0; i < listeners_.size(); ++i)
      if (polled[i].revents != 0)
        connections.push_back(
            {Descriptor{::accept4(listeners_[i].number(), nullptr, nullptr, SOCK_CLOEXEC),
                        "accept4"},
             i,
             {}});
  }
}

}  // namespace sluice::test
