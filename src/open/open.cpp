#include "sluice/open.hpp"

#include <fmt/format.h>

#include <string_view>
#include <system_error>

#include "net/endpoint.hpp"
#include "net/socket.hpp"
#include "open/embedded.hpp"
#include "open/settings.hpp"

namespace sluice {
namespace {

constexpr std::string_view offered =
    "embedded:, embedded:/path, redis://, rediss://, redis+unix://, valkey://, valkeys://, "
    "valkey+unix://, redis+sentinel://, rediss+sentinel://, valkey+sentinel://, "
    "valkeys+sentinel://, redis+cluster://, rediss+cluster://, valkey+cluster://, "
    "valkeys+cluster://";

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
  server.tls = tls_client(url);
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

std::unique_ptr<Store> open_sentinels(const Url& url, const OpenOptions& options) {
  return redis::open_sentinel(sentinel_options(url, options));
}

std::unique_ptr<Store> open_cluster(const Url& url, const OpenOptions& options) {
  return redis::open_cluster(cluster_options(url, options));
}

bool is_listening(const std::string& path) {
  try {
    const net::Endpoint endpoint{.host = "", .port = 0, .unix_path = path};
    net::Socket::start_connect(net::resolve(endpoint).front());
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

/// With share=1 a folder that another process has is used through the socket of its server.
std::unique_ptr<Store> open_folder(const Url& url, const OpenOptions& options) {
  const auto share = url.query.find("share");
  if (share == url.query.end()) return open_embedded(url, options);
  if (share->second != "1") refuse("share=1 is all that it can be");
  Url own = url;
  own.query.erase("share");
  try {
    return open_embedded(own, options);
  } catch (const Error& error) {
    redis::RedisOptions server = server_options({}, options);
    server.endpoint.unix_path = url.path + "/engine.sock";
    if (error.errc() != Errc::in_use || !is_listening(server.endpoint.unix_path)) throw;
    return redis::open_redis(std::move(server));
  }
}

struct Scheme {
  std::string_view name;
  std::unique_ptr<Store> (*open)(const Url&, const OpenOptions&);
};

constexpr Scheme schemes[] = {
    {"embedded", open_folder},
    {"redis", open_tcp},
    {"valkey", open_tcp},
    {"rediss", open_tcp},
    {"valkeys", open_tcp},
    {"redis+unix", open_unix},
    {"valkey+unix", open_unix},
    {"redis+cluster", open_cluster},
    {"rediss+cluster", open_cluster},
    {"valkey+cluster", open_cluster},
    {"valkeys+cluster", open_cluster},
    {"redis+sentinel", open_sentinels},
    {"valkey+sentinel", open_sentinels},
    {"rediss+sentinel", open_sentinels},
    {"valkeys+sentinel", open_sentinels},
};

}  // namespace

std::unique_ptr<Store> open(std::string_view text, const OpenOptions& options) {
  const Url url = parse_url(text);
  for (const auto& scheme : schemes)
    if (scheme.name == url.scheme) return scheme.open(url, options);
  refuse(fmt::format("'{}:' is no kind of store; there are {}", url.scheme, offered));
}

}  // namespace sluice
