#include "proxy/process/listening.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "sluice/error.hpp"

namespace sluice::proxy {
namespace {

constexpr int backlog = 128;

Error failure(const net::Endpoint& endpoint, const char* what, int number) {
  const bool taken = number == EADDRINUSE;
  return Error{taken ? Errc::in_use : Errc::connection,
               fmt::format("cannot listen on {}: {}: {}{}", net::to_string(endpoint), what,
                           std::strerror(number),
                           taken ? "; another process has it, or choose another address" : "")};
}

/// True: there is a socket's file that nobody listens on.
bool is_left_over(const net::Address& address, const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool refused = ::connect(probe, address.get(), address.size) != 0 && errno == ECONNREFUSED;
  ::close(probe);
  return refused;
}

bool is_loopback(const net::Address& address) {
  if (address.family() == AF_UNIX) return true;
  if (address.family() == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address.storage, sizeof in);
    return ntohl(in.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 in6{};
  std::memcpy(&in6, &address.storage, sizeof in6);
  return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

}  // namespace

Listening::~Listening() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

Listening Listening::open(const net::Endpoint& endpoint, unsigned permissions) {
  const net::Address address = net::resolve(endpoint).front();
  Listening listening{::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const int descriptor = listening.descriptor_;
  if (descriptor < 0) throw failure(endpoint, "socket", errno);
  if (endpoint.is_unix()) {
    if (is_left_over(address, endpoint.unix_path)) ::unlink(endpoint.unix_path.c_str());
    // Before bind: the file then never has more than these, and the umask of other threads is left alone.
    if (::fchmod(descriptor, permissions) != 0) throw failure(endpoint, "fchmod", errno);
  } else {
    const int yes = 1;
    if (::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
      throw failure(endpoint, "SO_REUSEADDR", errno);
  }
  if (::bind(descriptor, address.get(), address.size) != 0) throw failure(endpoint, "bind", errno);
  listening.path_ = endpoint.unix_path;
  if (::listen(descriptor, backlog) != 0) throw failure(endpoint, "listen", errno);
  return listening;
}

std::uint16_t Listening::port() const {
  net::Address address;
  address.size = sizeof address.storage;
  if (::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0)
    return 0;
  sockaddr_in6 in{};  // the port lies at the same place in both families
  std::memcpy(&in, &address.storage, sizeof in);
  return ntohs(in.sin6_port);
}

bool is_local(const net::Endpoint& endpoint) {
  return std::ranges::all_of(net::resolve(endpoint), is_loopback);
}

net::Endpoint parse_endpoint(std::string_view text) {
  net::Endpoint endpoint;
  if (text.starts_with('/')) {
    endpoint.unix_path = text;
    return endpoint;
  }
  const auto colon = text.rfind(':');
  const auto port = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  auto host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (port.empty() || error != std::errc{} || rest != port.data() + port.size() || host.empty())
    throw Error{Errc::bad_argument,
                fmt::format("'{}' is no address: write host:port or /path/of/a/socket", text)};
  endpoint.host = host;
  return endpoint;
}

}  // namespace sluice::proxy
