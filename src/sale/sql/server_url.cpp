#include "sale/sql/server_url.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/url.hpp"

namespace sluice::sale {
namespace {

constexpr const char* authorities_of_the_system = "/etc/ssl/certs/ca-certificates.crt";

bool yes_or_no(const Url& url, std::string_view name, std::pair<const char*, const char*> words,
               bool otherwise) {
  const auto found = url.query.find(name);
  if (found == url.query.end()) return otherwise;
  if (found->second == words.first) return true;
  if (found->second == words.second) return false;
  refuse(fmt::format("the setting '{}' is {} or {}, not '{}'", name, words.first, words.second,
                     found->second));
}

std::string text(const Url& url, std::string_view name) {
  const auto found = url.query.find(name);
  return found == url.query.end() ? "" : found->second;
}

/// PostgreSQL's own word for it. `prefer` and `allow` would go on without TLS, and tell nobody.
bool asks_for_tls(const Url& url) {
  const auto mode = text(url, "sslmode");
  if (mode == "prefer" || mode == "allow")
    refuse("sslmode=" + mode +
           " would speak without TLS where the server has none, and nobody would know: write "
           "tls=yes or tls=no");
  if (!mode.empty() && mode != "disable" && mode != "require" && mode != "verify-ca" &&
      mode != "verify-full")
    refuse("sslmode is disable or verify-full, not '" + mode + "'");
  return !mode.empty() && mode != "disable";
}

void set_tls(const Url& url, ServerUrl& server) {
  server.tls_ca = text(url, "tls_ca");
  server.tls_certificate = text(url, "tls_certificate");
  server.tls_key = text(url, "tls_key");
  const bool is_implied = url.query.contains("tls_ca") || url.query.contains("tls_certificate") ||
                          url.query.contains("tls_key") || url.query.contains("tls_verify");
  server.has_tls = yes_or_no(url, "tls", {"yes", "no"}, is_implied || asks_for_tls(url));
  server.is_verified = yes_or_no(url, "tls_verify", {"full", "none"}, true);
  if (!server.has_tls && is_implied) refuse("the URL has settings of TLS, and says tls=no");
  if (server.tls_certificate.empty() != server.tls_key.empty())
    refuse("tls_certificate and tls_key belong together");
  if (server.has_tls && server.host.empty()) refuse("there is no TLS on a unix socket");
  if (server.has_tls && server.is_verified && server.tls_ca.empty())
    server.tls_ca = authorities_of_the_system;
}

}  // namespace

ServerUrl server_url(const std::string& text_of_url, std::uint16_t usual_port) {
  static constexpr std::array<std::string_view, 7> known{
      "socket", "sslmode", "tls", "tls_ca", "tls_certificate", "tls_key", "tls_verify"};
  const auto url = parse_url(text_of_url);
  refuse_unknown_settings(url, known);
  if (!url.has_authority || url.path.size() < 2 || url.path.find('/', 1) != std::string::npos)
    refuse(fmt::format("the URL of a database names one, as in {0}://user@host/shop", url.scheme));
  if (url.servers.size() != 1) refuse("the URL of a database for orders has one host");

  ServerUrl server{.host = url.servers.front().host,
                   .port = url.servers.front().port.value_or(usual_port),
                   .socket = text(url, "socket"),
                   .user = url.user,
                   .password = url.password,
                   .database = url.path.substr(1)};
  if (!server.host.empty() && !server.socket.empty())
    refuse("the URL has a host and a socket: leave one out, as in " + url.scheme +
           ":///shop?socket=/run/…");
  // Both libraries read more than a name from a host with these in it.
  if (server.host.find_first_of(";,=/'\\ ") != std::string::npos)
    refuse("the host of the URL is no name and no address");
  set_tls(url, server);
  server.description =
      server.host.empty()
          ? fmt::format("{}:///{}{}{}", url.scheme, server.database,
                        server.socket.empty() ? "" : "?socket=", server.socket)
          : fmt::format("{}://{}:{}/{}", url.scheme,
                        server.host.contains(':') ? "[" + server.host + "]" : server.host,
                        server.port, server.database);
  return server;
}

}  // namespace sluice::sale
