#include "cli/load/target.hpp"

#include <fmt/format.h>
#include <netinet/in.h>

#include "base/url.hpp"
#include "sluice/error.hpp"

namespace sluice::load {
namespace {

constexpr std::uint16_t http_port = 80;
constexpr std::uint16_t https_port = 443;

bool is_loopback(const net::Address& address) noexcept {
  if (address.family() == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr ==
               htonl(INADDR_LOOPBACK) ||
           (ntohl(reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr) >> 24) ==
               127;
  if (address.family() == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
  return false;
}

net::Endpoint endpoint_in(const std::string& text, bool& is_tls) {
  const auto url = parse_url(text);
  is_tls = url.scheme == "https";
  const bool is_http = is_tls || url.scheme == "http";
  if (!is_http || url.servers.size() != 1 || url.servers[0].host.empty() || !url.user.empty() ||
      !url.query.empty() || (!url.path.empty() && url.path != "/"))
    throw Error{Errc::bad_argument,
                fmt::format("'{}' is no address of a service: write http://HOST:PORT or "
                            "https://HOST:PORT, and the sale as --sale NAME",
                            url.user.empty() ? text : url.scheme + "://..."),
                Effect::none};
  return {.host = url.servers[0].host,
          .port = url.servers[0].port.value_or(is_tls ? https_port : http_port),
          .unix_path = {}};
}

}  // namespace

LoadTargets targets_of(const std::vector<std::string>& urls, bool allows_remote) {
  LoadTargets targets;
  for (const auto& url : urls) {
    bool is_tls = false;
    auto endpoint = endpoint_in(url, is_tls);
    if (!targets.all.empty() && is_tls != targets.are_tls)
      throw Error{Errc::bad_argument, "http and https do not go together: give one of them",
                  Effect::none};
    targets.are_tls = is_tls;
    const auto address = net::resolve(endpoint).front();
    if (!allows_remote && !is_loopback(address))
      throw Error{Errc::bad_argument,
                  fmt::format("{} is another machine: a load test can bring it down; where it is "
                              "yours, and awaits it, give --remote",
                              net::to_string(endpoint)),
                  Effect::none};
    targets.all.push_back({std::move(endpoint), address});
  }
  return targets;
}

}  // namespace sluice::load
