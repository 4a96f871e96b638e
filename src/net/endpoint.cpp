#include "net/endpoint.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/integer.hpp"
#include "sluice/error.hpp"

namespace sluice::net {
namespace {

Address unix_address(const std::string& path) {
  sockaddr_un name{};
  if (path.size() >= sizeof name.sun_path)
    throw Error{Errc::bad_argument,
                fmt::format("the path of a unix socket has at most {} bytes, this one has {}: {}",
                            sizeof name.sun_path - 1, path.size(), path)};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  Address address;
  std::memcpy(&address.storage, &name, sizeof name);
  address.size = sizeof name;
  return address;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return endpoint.unix_path;
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
                 : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

bool Address::operator==(const Address& other) const noexcept {
  return size == other.size && std::memcmp(&storage, &other.storage, size) == 0;
}

bool is_numeric(const std::string& host) noexcept {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool is_of_this_machine(const Endpoint& listen) noexcept {
  return listen.is_unix() || listen.host == "localhost" || listen.host == "::1" ||
         (is_numeric(listen.host) && listen.host.starts_with("127."));
}

std::vector<Address> resolve(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return {unix_address(endpoint.unix_path)};

  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const auto port = std::to_string(endpoint.port);
  int failure = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found);
  if (failure == EAI_ADDRFAMILY ||
      failure == EAI_NONAME) {  // "::1" on a machine with loopback alone
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found) == 0) failure = 0;
  }
  if (failure != 0)
    throw Error{Errc::connection,
                fmt::format("cannot find the host '{}': {}", endpoint.host,
                            failure == EAI_SYSTEM ? std::generic_category().message(errno)
                                                  : ::gai_strerror(failure))};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all{found, &::freeaddrinfo};

  std::vector<Address> addresses;
  for (const addrinfo* one = found; one; one = one->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
  }
  return addresses;
}

Endpoint read_endpoint(const std::string& word) {
  if (word.starts_with('/')) return {.host = {}, .port = 0, .unix_path = word};
  const auto colon = word.rfind(':');
  auto host = word.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto port =
      colon == word.npos ? std::nullopt : parse_integer<std::uint16_t>(word.substr(colon + 1));
  if (!port || host.empty())
    throw Error{Errc::bad_argument,
                fmt::format("'{}' is no address: write HOST:PORT with a port from 0 (a free one) "
                            "to 65535, like 127.0.0.1:8080 or [::1]:8080, or the path of a unix "
                            "socket",
                            word)};
  return {.host = host, .port = *port, .unix_path = {}};
}

}  // namespace sluice::net
