#include "server/this_machine.hpp"

#include <algorithm>
#include <array>

#include "http/text.hpp"
#include "net/endpoint.hpp"

namespace sluice::server {
namespace {

/// Without its port: "[::1]:8080" is "::1".
std::string host_without_port(std::string_view host) {
  if (host.starts_with('[')) return std::string{host.substr(1, host.find(']') - 1)};
  return std::string{host.substr(0, host.find(':'))};
}

/// A numeric address.
bool is_of_loopback(const std::string& address) {
  return address == "::1" || (net::is_numeric(address) && address.starts_with("127."));
}

/// What proxies add: X-Forwarded-For and its like, Forwarded (RFC 7239), Via, and the client's
/// address under the names that balancers have for it.
bool is_forwarding(const http::Field& field) {
  constexpr std::string_view family = "X-Forwarded";
  constexpr std::array<std::string_view, 9> others{"Forwarded",           "Via",
                                                   "X-Real-IP",           "X-Client-IP",
                                                   "X-Cluster-Client-IP", "X-Original-For",
                                                   "True-Client-IP",      "CF-Connecting-IP",
                                                   "Fastly-Client-IP"};
  return http::same_word(field.name.substr(0, family.size()), family) ||
         std::ranges::any_of(others, [&](auto name) { return http::same_word(name, field.name); });
}

}  // namespace

bool serves_this_machine_alone(const http::ServerOptions& http) {
  return net::is_of_this_machine(http.listen) && http.trusted.empty() &&
         http.proxy_protocol.empty();
}

bool is_local(const http::Request& request) {
  const auto host = host_without_port(request.field("Host").value_or(""));
  return is_of_loopback(request.client()) &&
         !std::ranges::any_of(request.fields(), is_forwarding) &&
         (http::same_word(host, "localhost") || is_of_loopback(host));
}

}  // namespace sluice::server
