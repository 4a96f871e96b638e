#include "net/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <system_error>

namespace sluice::net {
namespace {

void set_option(int descriptor, int level, int name, int value) {
  // Advice, not a promise: a socket without it still works.
  static_cast<void>(::setsockopt(descriptor, level, name, &value, sizeof value));
}

Transfer result_of(ssize_t moved, bool zero_is_end) noexcept {
  if (moved > 0) return {Transfer::Outcome::moved, static_cast<std::size_t>(moved), 0};
  if (moved == 0)
    return {zero_is_end ? Transfer::Outcome::closed : Transfer::Outcome::would_block, 0, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
  return {Transfer::Outcome::failed, 0, errno};
}

}  // namespace

Socket Socket::start_connect(const Address& address) {
  Socket socket{::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const int descriptor = socket.descriptor();
  if (descriptor < 0) throw std::system_error{errno, std::generic_category(), "socket"};
  if (address.family() != AF_UNIX) {
    set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    socket.keep_alive();
  }
  int result = 0;
  do {
    result = ::connect(descriptor, address.get(), address.size);
  } while (result < 0 && errno == EINTR);
  if (result < 0 && errno != EINPROGRESS)
    throw std::system_error{errno, std::generic_category(), "connect"};
  return socket;
}

void Socket::keep_alive() noexcept { net::keep_alive(descriptor()); }

void keep_alive(int descriptor) noexcept {
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

int connect_error(int descriptor) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

bool is_unix(int descriptor) noexcept {
  int domain = 0;
  socklen_t size = sizeof domain;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

bool is_readable(int descriptor) noexcept {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

Transfer Socket::read_some(std::span<char> into) noexcept {
  ssize_t got = 0;
  do {
    got = ::recv(descriptor(), into.data(), into.size(), 0);
  } while (got < 0 && errno == EINTR);
  return result_of(got, true);
}

Transfer Socket::write_some(std::string_view bytes) noexcept {
  ssize_t sent = 0;
  do {
    sent = ::send(descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return result_of(sent, false);
}

namespace {

/// Of no family: the peer has gone.
Address peer_address(int descriptor) {
  Address address;
  address.size = sizeof address.storage;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0)
    address = {};
  return address;
}

}  // namespace

std::string network_of(int descriptor) {
  const auto address = peer_address(descriptor);
  const auto bytes = [&](std::size_t from, std::size_t count) {
    return std::string(reinterpret_cast<const char*>(&address.storage) + from, count);
  };
  if (address.family() == AF_INET) return bytes(offsetof(sockaddr_in, sin_addr), 4);
  if (address.family() != AF_INET6) return {};
  constexpr auto at = offsetof(sockaddr_in6, sin6_addr);
  const auto whole = bytes(at, sizeof(in6_addr));
  return whole.starts_with(std::string(10, '\0') + "\xff\xff") ? whole.substr(12)
                                                               : whole.substr(0, 8);
}

std::string origin_of(int descriptor) {
  auto network = network_of(descriptor);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (!network.empty() || ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return network;
  return "uid " + std::to_string(peer.uid);
}

namespace {

std::string text_of(const Address& address) {
  if (address.family() == AF_UNSPEC) return {};
  if (address.family() == AF_UNIX) return "unix";
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(address.get(), address.size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return to_string(Endpoint{.host = host.data(),
                            .port = static_cast<std::uint16_t>(std::atoi(port.data())),
                            .unix_path = {}});
}

}  // namespace

std::string peer_of(int descriptor) { return text_of(peer_address(descriptor)); }

std::string local_of(int descriptor) {
  Address address;
  address.size = sizeof address.storage;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0)
    return {};
  return text_of(address);
}

void Socket::shutdown() noexcept {
  if (descriptor_.is_open()) ::shutdown(descriptor(), SHUT_RDWR);
}

}  // namespace sluice::net
