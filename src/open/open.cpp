#include "sluice/open.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/duration.hpp"
#include "open/embedded.hpp"
#include "open/url.hpp"
#include "redis/redis_store.hpp"
#include "sluice/log.hpp"

namespace sluice {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::string_view offered =
    "embedded:, embedded:/path, redis://, rediss://, redis+unix://, valkey://, valkeys://, "
    "valkey+unix://";

microseconds time_of(std::string_view text, std::string_view what) {
  const auto time = parse_duration(text, milliseconds{1});
  if (!time)
    refuse(fmt::format("the {} of the URL is {}, not '{}'; a bare number is milliseconds", what,
                       duration_form, text));
  return *time;
}

int database_of(std::string_view text) {
  return static_cast<int>(parse_number(text, 1'000'000, "database"));
}

milliseconds positive_ms(std::string_view text, std::string_view what) {
  const auto time = time_of(text, what);
  if (time < milliseconds{1}) refuse(fmt::format("the {} is at least 1 ms", what));
  return std::chrono::duration_cast<milliseconds>(time);
}

/// What CLIENT SETNAME takes.
void check_client_name(std::string_view name) {
  if (!std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; }))
    refuse("the name of a connection has letters, digits and punctuation of ASCII, and no blanks");
}

constexpr std::string_view server_settings[] = {"name", "db", "timeout", "connect_timeout", "spin"};
constexpr std::string_view tls_settings[] = {
    "tls_ca",          "tls_certificate", "tls_key",           "tls_server_name",
    "tls_min_version", "tls_verify",      "tls_expiry_warning"};

bool is_secure(const Url& url) { return url.scheme == "rediss" || url.scheme == "valkeys"; }

void check_settings(const Url& url) {
  std::vector<std::string_view> known{std::begin(server_settings), std::end(server_settings)};
  if (is_secure(url)) known.insert(known.end(), std::begin(tls_settings), std::end(tls_settings));
  for (const auto& [name, value] : url.query)
    if (!is_secure(url) && std::ranges::find(tls_settings, name) != std::end(tls_settings))
      refuse(fmt::format("'{}' is for TLS, which {}:// does not speak: write rediss://", name,
                         url.scheme));
  refuse_unknown_settings(url, known);
}

/// One of two words.
bool is_first(std::string_view setting, std::string_view value, std::string_view first,
              std::string_view second) {
  if (value != first && value != second)
    refuse(fmt::format("{} is {} or {}, not '{}'", setting, first, second, value));
  return value == first;
}

/// REQUIRES: the settings are known.
net::TlsClientOptions tls_options(const Url& url) {
  net::TlsClientOptions tls;
  auto& files = tls.files;
  for (const auto& [name, value] : url.query) {
    if (!name.starts_with("tls_")) continue;
    if (value.empty()) refuse(fmt::format("the setting '{0}' is empty; leave it out", name));
    if (name == "tls_ca") files.ca = value;
    if (name == "tls_certificate") files.certificate = value;
    if (name == "tls_key") files.key = value;
    if (name == "tls_server_name") tls.server_name = value;
    if (name == "tls_min_version")
      files.least =
          is_first(name, value, "1.2", "1.3") ? net::TlsVersion::v1_2 : net::TlsVersion::v1_3;
    if (name == "tls_verify") files.verify = is_first(name, value, "full", "none");
    if (name == "tls_expiry_warning")
      tls.expiry_warning =
          std::chrono::duration_cast<std::chrono::seconds>(time_of(value, "tls_expiry_warning"));
  }
  if (files.certificate.empty() != files.key.empty())
    refuse("tls_certificate and tls_key belong together: give both, or none");
  if (!files.verify && !files.ca.empty())
    refuse("tls_verify=none trusts everybody, and has no use for tls_ca: leave one of them out");
  return tls;
}

redis::RedisOptions server_options(const Url& url, const OpenOptions& options) {
  check_settings(url);
  redis::RedisOptions server;
  server.user = url.user;
  server.password = url.password;
  for (const auto& [name, value] : url.query) {
    if (name == "name") server.name = value;
    if (name == "db") server.database = database_of(value);
    if (name == "timeout") server.command_timeout = positive_ms(value, "timeout");
    if (name == "connect_timeout") server.connect_timeout = positive_ms(value, "connect_timeout");
    if (name == "spin") server.spin = time_of(value, "spin");
  }
  server.name = options.name.value_or(std::move(server.name));
  check_client_name(server.name);
  server.command_timeout = options.command_timeout.value_or(server.command_timeout);
  server.connect_timeout = options.connect_timeout.value_or(server.connect_timeout);
  server.open_timeout = options.open_timeout.value_or(server.open_timeout);
  server.spin = options.spin.value_or(server.spin);
  server.executor = options.executor;
  return server;
}

void secure(redis::RedisOptions& server, net::TlsClientOptions tls) {
  const bool verifies = tls.files.verify;
  server.tls = std::make_shared<net::TlsClient>(std::move(tls));
  if (!verifies)
    log(LogLevel::warning,
        fmt::format("{}: its certificate is not verified (tls_verify=none): a stranger on the way "
                    "can read and change all that is said",
                    redis::describe(server)));
}

std::unique_ptr<Store> open_tcp(const Url& url, const OpenOptions& options) {
  if (!url.has_authority || url.servers.front().host.empty())
    refuse(fmt::format("{0}: needs a host: {0}://127.0.0.1:6379", url.scheme));
  if (url.servers.size() > 1)
    refuse(
        fmt::format("the URL names several servers, but {}:// has one: name that one", url.scheme));
  auto server = server_options(url, options);
  server.endpoint.host = url.servers.front().host;
  server.endpoint.port = url.servers.front().port.value_or(6379);
  if (!url.path.empty() && url.path != "/") {
    if (url.query.contains("db")) refuse("the URL names the database twice, as /N and as db=N");
    server.database = database_of(std::string_view{url.path}.substr(1));
  }
  if (is_secure(url)) secure(server, tls_options(url));
  return redis::open_redis(std::move(server));
}

std::unique_ptr<Store> open_unix(const Url& url, const OpenOptions& options) {
  if (names_a_host(url) || url.path.size() < 2)
    refuse(fmt::format("{0}: needs the path of a socket and no host: {0}:///run/redis.sock",
                       url.scheme));
  auto server = server_options(url, options);
  server.endpoint.unix_path = url.path;
  return redis::open_redis(std::move(server));
}

std::unique_ptr<Store> not_offered_yet(const Url& url, const OpenOptions&) {
  refuse(fmt::format("{}:// is not offered yet; there are {}", url.scheme, offered));
}

struct Scheme {
  std::string_view name;
  std::unique_ptr<Store> (*open)(const Url&, const OpenOptions&);
};

constexpr Scheme schemes[] = {
    {"embedded", open_embedded},
    {"redis", open_tcp},
    {"valkey", open_tcp},
    {"rediss", open_tcp},
    {"valkeys", open_tcp},
    {"redis+unix", open_unix},
    {"valkey+unix", open_unix},
    {"redis+cluster", not_offered_yet},
    {"redis+sentinel", not_offered_yet},
};

}  // namespace

std::unique_ptr<Store> open(std::string_view text, const OpenOptions& options) {
  const Url url = parse_url(text);
  for (const auto& scheme : schemes)
    if (scheme.name == url.scheme) return scheme.open(url, options);
  refuse(fmt::format("'{}:' is no kind of store; there are {}", url.scheme, offered));
}

}  // namespace sluice
