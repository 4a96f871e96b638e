#include "open/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <string_view>
#include <vector>

#include "base/duration.hpp"
#include "sluice/log.hpp"
#include "sluice/store.hpp"

namespace sluice {

bool is_secure(const Url& url) {
  return url.scheme.starts_with("rediss") || url.scheme.starts_with("valkeys");
}

namespace {

/// One of two words.
bool is_first(std::string_view setting, std::string_view value, std::string_view first,
              std::string_view second) {
  if (value != first && value != second)
    refuse(fmt::format("{} is {} or {}, not '{}'", setting, first, second, value));
  return value == first;
}

/// As the servers do, unless the URL says otherwise.
bool are_sentinels_secure(const Url& url) {
  const auto found = url.query.find("sentinel_tls");
  if (found == url.query.end()) return is_secure(url);
  return is_first("sentinel_tls", found->second, "on", "off");
}

bool speaks_tls(const Url& url) { return is_secure(url) || are_sentinels_secure(url); }

}  // namespace

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

microseconds time_of(std::string_view text, std::string_view what) {
  const auto time = parse_duration(text, milliseconds{1});
  if (!time)
    refuse(fmt::format("the {} of the URL is {}, not '{}'; a bare number is milliseconds", what,
                       duration_form, text));
  return *time;
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

constexpr std::string_view replica_settings[] = {"read_from", "replica_max_lag"};
constexpr std::string_view sentinel_settings[] = {"sentinel_user", "sentinel_password",
                                                  "sentinel_tls"};

/// "+sentinel", "+cluster"; empty: one server.
std::string_view kind_of(const Url& url) {
  const auto plus = url.scheme.find('+');
  return plus == std::string::npos ? std::string_view{} : std::string_view{url.scheme}.substr(plus);
}

bool knows_replicas(const Url& url) {
  return kind_of(url) == "+sentinel" || kind_of(url) == "+cluster";
}

[[noreturn]] void refuse_replicas(const Url& url, std::string_view setting) {
  refuse(
      fmt::format("'{}' needs to know which replicas a master has, by whose word {}:// does not "
                  "know any: open redis+sentinel:// or redis+cluster://",
                  setting, url.scheme));
}

void check_settings(const Url& url) {
  std::vector<std::string_view> known{std::begin(server_settings), std::end(server_settings)};
  if (kind_of(url) == "+sentinel")
    known.insert(known.end(), std::begin(sentinel_settings), std::end(sentinel_settings));
  if (knows_replicas(url))
    known.insert(known.end(), std::begin(replica_settings), std::end(replica_settings));
  if (speaks_tls(url)) known.insert(known.end(), std::begin(tls_settings), std::end(tls_settings));
  for (const auto& [name, value] : url.query)
    if (!speaks_tls(url) && std::ranges::find(tls_settings, name) != std::end(tls_settings))
      refuse(fmt::format("'{}' is for TLS, which {}:// does not speak: write rediss{}://", name,
                         url.scheme, kind_of(url)));
  for (const auto& [name, value] : url.query)
    if (std::ranges::find(replica_settings, name) != std::end(replica_settings) &&
        std::ranges::find(known, name) == known.end())
      refuse_replicas(url, name);
  refuse_unknown_settings(url, known);
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

}  // namespace

int database_of(std::string_view text) {
  return static_cast<int>(parse_number(text, 1'000'000, "database"));
}

namespace {

/// Nothing: the master is read from.
std::optional<milliseconds> replica_max_lag(const Url& url, const OpenOptions& options) {
  auto from = ReadFrom::master;
  std::optional<milliseconds> lag;
  for (const auto& [name, value] : url.query) {
    if (name == "read_from")
      from = is_first(name, value, "replica", "master") ? ReadFrom::replica : ReadFrom::master;
    if (name == "replica_max_lag") lag = positive_ms(value, name);
  }
  from = options.read_from.value_or(from);
  if (options.replica_max_lag) lag = options.replica_max_lag;
  if (!knows_replicas(url) && (options.read_from || options.replica_max_lag))
    refuse_replicas(url, options.read_from ? "read_from" : "replica_max_lag");
  if (from == ReadFrom::master) {
    if (lag) refuse("replica_max_lag has no use without read_from=replica: give both, or none");
    return std::nullopt;
  }
  if (lag && *lag < milliseconds{100})
    refuse("replica_max_lag is 100ms at least: less is not known of a replica; read the master");
  return lag.value_or(milliseconds{1000});
}

}  // namespace

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
  server.replica_max_lag = replica_max_lag(url, options);
  return server;
}

std::shared_ptr<net::TlsClient> tls_client(const Url& url) {
  if (!speaks_tls(url)) return nullptr;
  auto options = tls_options(url);
  if (!options.files.verify)
    log(LogLevel::warning,
        fmt::format("{}://{}: its certificate is not verified (tls_verify=none): a stranger on "
                    "the way can read and change all that is said",
                    url.scheme, url.servers.front().host));
  return std::make_shared<net::TlsClient>(std::move(options));
}

redis::ClusterStoreOptions cluster_options(const Url& url, const OpenOptions& options) {
  redis::ClusterStoreOptions cluster{.node = server_options(url, options), .seeds = {}};
  for (const auto& server : url.servers) {
    if (server.host.empty())
      refuse(fmt::format("{0}: needs the hosts of some nodes: {0}://10.0.0.1:6379,10.0.0.2:6379",
                         url.scheme));
    cluster.seeds.push_back(
        {.host = server.host, .port = server.port.value_or(6379), .unix_path = {}});
  }
  if (cluster.seeds.empty())
    refuse(fmt::format("{0}: needs the hosts of some nodes: {0}://10.0.0.1:6379,10.0.0.2:6379",
                       url.scheme));
  if (url.query.contains("db") || (!url.path.empty() && url.path != "/" && url.path != "/0"))
    refuse("a cluster has database 0 alone: leave the database out");
  cluster.node.tls = tls_client(url);
  return cluster;
}

/// "/master" or "/master/2"; a '/' of the name is %2F.
redis::SentinelStoreOptions sentinel_options(const Url& url, const OpenOptions& options) {
  const auto& name = url.segments.front();
  if (!url.has_authority || url.servers.front().host.empty() || name.empty())
    refuse(
        fmt::format("{0}: needs Sentinels and the name of their master: "
                    "{0}://127.0.0.1:26379,127.0.0.2:26379/mymaster",
                    url.scheme));
  redis::SentinelStoreOptions store{.server = server_options(url, options),
                                    .sentinels = {},
                                    .name = name,
                                    .sentinel_user = {},
                                    .sentinel_password = {},
                                    .sentinel_tls = {}};
  for (const auto& [host, port] : url.servers)
    store.sentinels.push_back({.host = host, .port = port.value_or(26379), .unix_path = {}});
  for (const auto& [name, value] : url.query) {
    if (name == "sentinel_user") store.sentinel_user = value;
    if (name == "sentinel_password") store.sentinel_password = value;
  }
  if (!store.sentinel_user.empty() && store.sentinel_password.empty())
    refuse("sentinel_user and sentinel_password belong together");
  const auto database = fmt::format("{}", fmt::join(url.segments | std::views::drop(1), "/"));
  if (!database.empty()) {
    if (url.query.contains("db")) refuse("the URL names the database twice, as /N and as db=N");
    store.server.database = database_of(database);
  }
  const auto tls = tls_client(url);
  if (is_secure(url)) store.server.tls = tls;
  if (are_sentinels_secure(url)) store.sentinel_tls = tls;
  return store;
}

}  // namespace sluice
