#include "server/public_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "http/networks.hpp"

namespace sluice::server {
namespace {

/// IANA's registry of special-purpose IPv4 addresses, and multicast.
const http::Networks& special_ipv4() {
  static const http::Networks networks{
      {"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
       "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
       "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
       "224.0.0.0/4", "240.0.0.0/4"}};
  return networks;
}

/// All that is given out for use in the internet (IANA); what is not there, is not public.
const http::Networks& global_ipv6() {
  static const http::Networks networks{{"2000::/3"}};
  return networks;
}

/// Of these: protocols' own with Teredo, documentation, 6to4.
const http::Networks& special_ipv6() {
  static const http::Networks networks{
      {"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"}};
  return networks;
}

}  // namespace

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
                sizeof text);
  else if (address->sa_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
                sizeof text);
  else
    return "an address of another kind than IP";
  return text;
}

bool is_public(const sockaddr* address) noexcept {
  switch (address->sa_family) {
    case AF_INET: return !special_ipv4().has(text_of(address));
    case AF_INET6: {
      const auto text = text_of(address);
      return global_ipv6().has(text) && !special_ipv6().has(text);
    }
    default: return false;
  }
}

}  // namespace sluice::server
