#include "net/server_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace sluice::net {
namespace {

[[noreturn]] void fail(const Endpoint& endpoint) {
  throw std::system_error{errno, std::generic_category(),
                          fmt::format("cannot listen on {}", to_string(endpoint))};
}

void set(int descriptor, int level, int name, int value = 1) {
  static_cast<void>(::setsockopt(descriptor, level, name, &value, sizeof value));
}

/// Whether the unix socket is of a process that has ended.
bool is_left_over(const Endpoint& endpoint, const Address& address) {
  struct stat found {};
  if (::lstat(endpoint.unix_path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const Socket probe{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  return ::connect(probe.descriptor(), address.get(), address.size) != 0 && errno == ECONNREFUSED;
}

}  // namespace

ServerSocket ServerSocket::open(const Endpoint& endpoint, const ListenOptions& options) {
  const auto address = resolve(endpoint).front();
  const int descriptor = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  ServerSocket socket{descriptor};
  if (descriptor < 0) fail(endpoint);
  if (endpoint.is_unix()) {
    if (is_left_over(endpoint, address)) ::unlink(endpoint.unix_path.c_str());
    // The file never has more than these from its birth, when the umask may take away more.
    if (options.permissions && ::fchmod(descriptor, *options.permissions) != 0) fail(endpoint);
  } else {
    set(descriptor, SOL_SOCKET, SO_REUSEADDR);
    if (options.share_port && !options.first) set(descriptor, SOL_SOCKET, SO_REUSEPORT);
    if (options.most_unsent > 0)  // what is accepted has it, too
      set(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(options.most_unsent));
  }
  if (::bind(descriptor, address.get(), address.size) != 0) fail(endpoint);
  if (options.share_port && options.first && !endpoint.is_unix())
    set(descriptor, SOL_SOCKET, SO_REUSEPORT);  // for those that come after it
  if (endpoint.is_unix() && options.permissions &&
      ::chmod(endpoint.unix_path.c_str(), *options.permissions) != 0)
    fail(endpoint);
  if (::listen(descriptor, options.backlog) != 0) fail(endpoint);
  return socket;
}

void ServerSocket::adjust(const Endpoint& endpoint, const ListenOptions& options) const noexcept {
  static_cast<void>(::listen(descriptor(), options.backlog));
  if (endpoint.is_unix() && options.permissions)
    static_cast<void>(::chmod(endpoint.unix_path.c_str(), *options.permissions));
}

ServerSocket ServerSocket::duplicate() const {
  ServerSocket other{::fcntl(descriptor(), F_DUPFD_CLOEXEC, 0)};
  if (other.descriptor() < 0) throw std::system_error{errno, std::generic_category(), "dup"};
  return other;
}

std::uint16_t ServerSocket::port() const noexcept {
  Address address;
  address.size = sizeof address.storage;
  if (::getsockname(descriptor(), reinterpret_cast<sockaddr*>(&address.storage), &address.size) !=
          0 ||
      (address.family() != AF_INET && address.family() != AF_INET6))
    return 0;
  sockaddr_in6 in{};  // the port lies at the same place in both families
  std::memcpy(&in, &address.storage, sizeof in);
  return ntohs(in.sin6_port);
}

ServerSocket::Accepted ServerSocket::accept() const noexcept {
  for (;;) {
    const int client = ::accept4(descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) {
      set(client, IPPROTO_TCP, TCP_NODELAY);
      return {Outcome::accepted, Socket{client}};
    }
    switch (errno) {
      case EINTR:
      case ECONNABORTED: continue;
      case EAGAIN: return {Outcome::none, {}};
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM: return {Outcome::out_of_descriptors, {}, errno};
      default: return {Outcome::failed, {}, errno};
    }
  }
}

}  // namespace sluice::net
