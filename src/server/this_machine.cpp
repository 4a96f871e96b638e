#include "server/this_machine.hpp"

#include "http/text.hpp"
#include "net/endpoint.hpp"

namespace sluice::server {
namespace {

/// Without its port: "[::1]:8080" is "::1".
std::string host_without_port(std::string_view host) {
  if (host.starts_with('[')) return std::string{host.substr(1, host.find(']') - 1)};
  return std::string{host.substr(0, host.find(':'))};
}

}  // namespace

bool serves_this_machine_alone(const http::ServerOptions& http) {
  return net::is_of_this_machine(http.listen) && http.trusted.empty() &&
         http.proxy_protocol.empty();
}

bool names_this_machine(const http::Request& request) {
  const auto host = host_without_port(request.field("Host").value_or(""));
  return http::same_word(host, "localhost") || host == "::1" ||
         (net::is_numeric(host) && host.starts_with("127."));
}

}  // namespace sluice::server
