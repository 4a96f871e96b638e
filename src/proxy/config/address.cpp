#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <limits>

#include "base/integer.hpp"
#include "proxy/config/read.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::config {
namespace {

constexpr std::size_t longest_path = sizeof(sockaddr_un{}.sun_path) - 1;
constexpr unsigned most_permissions = 0777;
constexpr std::uint16_t libmemcached_port = 11211;
constexpr const char* any_host = "0.0.0.0";

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw Error{Errc::bad_argument, fmt::format("'{}' {}", text, why)};
}

/// Takes what follows the last `mark` off the end of `text`; the mark goes too.
std::optional<std::string_view> take_last(std::string_view& text, char mark) noexcept {
  const auto at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const auto last = text.substr(at + 1);
  text = text.substr(0, at);
  return last;
}

std::uint16_t port_of(std::string_view whole, std::string_view port) {
  const auto number = parse_number(port, std::numeric_limits<std::uint16_t>::max());
  if (number.value_or(0) == 0)
    refuse(whole, fmt::format("has the port '{}'; write a number from 1 to 65535", port));
  return static_cast<std::uint16_t>(*number);
}

std::string host_of(std::string_view text) {  // brackets are ours: "[::1]:6379"
  const bool bracketed = text.size() > 2 && text.starts_with('[') && text.ends_with(']');
  return std::string{bracketed ? text.substr(1, text.size() - 2) : text};
}

void check_path(std::string_view whole, std::string_view path) {
  if (path.size() > longest_path)
    refuse(whole, fmt::format("is a path of {} bytes; a unix socket has at most {}", path.size(),
                              longest_path));
}

/// What twemproxy takes: whatever precedes the last colon is the host.
net::Endpoint parse_any_address(std::string_view text) {
  net::Endpoint endpoint;
  if (text.starts_with('/')) {
    check_path(text, text);
    endpoint.unix_path = text;
    return endpoint;
  }
  auto host = text;
  const auto port = take_last(host, ':');
  if (!port) refuse(text, "is no address; write host:port, or /path of a unix socket");
  endpoint.port = port_of(text, *port);
  endpoint.host = host.empty() || host == "*" ? any_host : host_of(host);
  return endpoint;
}

/// `host`: as written, with the brackets of an IPv6 address, which may have a zone.
bool is_host(std::string_view host) {
  if (host.starts_with('[')) {
    const auto address = host_of(host);
    return address.size() < host.size() && address.contains(':') &&
           net::is_numeric(address.substr(0, address.find('%')));
  }
  return std::ranges::all_of(
      host, [](char c) { return c > ' ' && c < 0x7f && !std::string_view{":/@,[]"}.contains(c); });
}

unsigned permissions_of(std::string_view whole, std::string_view octal) {
  const auto bits = parse_integer<unsigned>(octal, 8);
  if (!bits || *bits > most_permissions)
    refuse(whole, fmt::format("has the permissions '{}'; write up to 0777 in octal", octal));
  return *bits;
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t most) noexcept {
  const auto number = parse_integer<std::uint64_t>(text);
  return number && *number <= most ? number : std::nullopt;
}

std::string_view name_of(std::string_view text, const net::Endpoint& endpoint) noexcept {
  const auto with_weight = text.rfind(':');
  if (endpoint.is_unix()) return text.substr(0, with_weight + 1);
  const auto address = text.substr(0, with_weight);
  return endpoint.port == libmemcached_port ? address.substr(0, address.rfind(':')) : address;
}

net::Endpoint parse_address(std::string_view text) {
  auto endpoint = parse_any_address(text);
  if (!endpoint.is_unix() && !is_host(text.substr(0, text.rfind(':'))))
    refuse(text, "has no host before its port; write host:port, or [address]:port of IPv6");
  return endpoint;
}

Listen parse_listen(std::string_view text) {
  Listen listen;
  listen.text = text;
  auto address = text;
  if (text.starts_with('/')) {
    if (const auto octal = take_last(address, ' '))
      listen.permissions = permissions_of(text, *octal);
  }
  if (address.rfind(':') == 0)
    refuse(text, "has no host; write * or 0.0.0.0 for all addresses of this machine");
  listen.endpoint = parse_any_address(address);
  return listen;
}

ServerSettings parse_server(std::string_view text) {
  const bool is_path = text.starts_with('/');
  const auto* const form = is_path ? "/path:weight [name]" : "host:port:weight [name]";
  ServerSettings server;
  auto address = text;
  const auto name = take_last(address, ' ');
  server.text = address;
  const auto weight = take_last(address, ':');
  if (!weight) refuse(text, fmt::format("is no server; write {}", form));
  const auto number = parse_number(*weight, std::numeric_limits<std::int32_t>::max());
  if (!number || *number == 0)
    refuse(text, fmt::format("has the weight '{}'; write {} with a weight from 1", *weight, form));
  server.weight = static_cast<std::uint32_t>(*number);

  if (!is_path && address.find(':') == std::string_view::npos)
    refuse(text, fmt::format("has no port or no weight; write {}", form));
  if (is_path && address.find(':') != std::string_view::npos)
    refuse(text, "has a path with a colon; choose one without");
  server.endpoint = parse_any_address(address);
  server.name = name ? *name : name_of(server.text, server.endpoint);
  return server;
}

std::string to_string(const ServerSettings& server) {
  const bool named = server.name != name_of(server.text, server.endpoint) ||
                     server.text.find(' ') != std::string::npos;  // what follows a space is a name
  return named ? fmt::format("{} {}", server.text, server.name) : server.text;
}

}  // namespace sluice::proxy::config
