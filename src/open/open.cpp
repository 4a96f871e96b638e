#include "sluice/open.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/embedded_store.hpp"
#include "open/url.hpp"
#include "redis/redis_store.hpp"

namespace sluice {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view offered =
    "embedded:, embedded:/path, redis://, redis+unix://, valkey://, valkey+unix://";

[[noreturn]] void refuse(const std::string& why) { throw Error{Errc::bad_argument, why}; }

void refuse_unknown_settings(const Url& url, std::span<const std::string_view> known) {
  for (const auto& [name, value] : url.query)
    if (std::find(known.begin(), known.end(), name) == known.end())
      refuse(fmt::format("'{}' is no setting of {}: there are {}", name, url.scheme,
                         fmt::join(known, ", ")));
}

milliseconds positive_ms(std::string_view text, std::string_view what) {
  const auto duration = parse_duration(text, what);
  if (duration < milliseconds{1}) refuse(fmt::format("the {} is at least 1 ms", what));
  return std::chrono::duration_cast<milliseconds>(duration);
}

void apply_query(const Url& url, redis::RedisOptions& to) {
  static constexpr std::string_view known[] = {"name", "db", "timeout", "connect_timeout", "spin"};
  refuse_unknown_settings(url, known);
  for (const auto& [name, value] : url.query) {
    if (name == "name") to.name = value;
    if (name == "db") to.database = static_cast<int>(parse_number(value, 1'000'000, "database"));
    if (name == "timeout") to.command_timeout = positive_ms(value, "timeout");
    if (name == "connect_timeout") to.connect_timeout = positive_ms(value, "connect_timeout");
    if (name == "spin") to.spin = parse_duration(value, "spin");
  }
}

void apply_options(const OpenOptions& from, redis::RedisOptions& to) {
  if (from.name) to.name = *from.name;
  if (from.command_timeout) to.command_timeout = *from.command_timeout;
  if (from.connect_timeout) to.connect_timeout = *from.connect_timeout;
  if (from.spin) to.spin = *from.spin;
}

redis::RedisOptions server_options(const Url& url, const OpenOptions& options) {
  redis::RedisOptions server;
  server.user = url.user;
  server.password = url.password;
  apply_query(url, server);
  apply_options(options, server);
  return server;
}

std::unique_ptr<Store> open_tcp(const Url& url, const OpenOptions& options) {
  if (!url.has_authority || url.host.empty())
    refuse(fmt::format("{0}: needs a host: {0}://127.0.0.1:6379", url.scheme));
  auto server = server_options(url, options);
  server.endpoint.host = url.host;
  server.endpoint.port = url.port.value_or(6379);
  if (!url.path.empty() && url.path != "/") {
    if (url.query.contains("db")) refuse("the URL names the database twice, as /N and as db=N");
    server.database =
        static_cast<int>(parse_number(std::string_view{url.path}.substr(1), 1'000'000, "database"));
  }
  return redis::open_redis(std::move(server));
}

std::unique_ptr<Store> open_unix(const Url& url, const OpenOptions& options) {
  if (!url.host.empty() || url.port || url.path.size() < 2)
    refuse(fmt::format("{0}: needs the path of a socket and no host: {0}:///run/redis.sock",
                       url.scheme));
  auto server = server_options(url, options);
  server.endpoint.unix_path = url.path;
  return redis::open_redis(std::move(server));
}

engine::Fsync fsync_mode(std::string_view text) {
  static constexpr std::pair<std::string_view, engine::Fsync> modes[] = {
      {"always", engine::Fsync::always},
      {"everysec", engine::Fsync::everysec},
      {"never", engine::Fsync::never}};
  for (const auto& [name, mode] : modes)
    if (name == text) return mode;
  refuse(fmt::format("fsync={} is not known: there are always, everysec, never", text));
}

std::unique_ptr<Store> open_embedded_url(const Url& url, const OpenOptions& options) {
  static constexpr std::string_view known[] = {"fsync"};
  refuse_unknown_settings(url, known);
  if (!url.host.empty() || url.port || !url.user.empty() || !url.password.empty())
    refuse("embedded: takes a folder and no host: embedded:/var/lib/app");
  engine::EmbeddedOptions embedded{.path = url.path, .clock = options.clock};
  if (const auto mode = url.query.find("fsync"); mode != url.query.end())
    embedded.fsync = fsync_mode(mode->second);
  return engine::open_embedded(std::move(embedded));
}

std::unique_ptr<Store> not_offered_yet(const Url& url, const OpenOptions&) {
  refuse(fmt::format("{}:// is not offered yet; there are {}", url.scheme, offered));
}

struct Scheme {
  std::string_view name;
  std::unique_ptr<Store> (*open)(const Url&, const OpenOptions&);
};

constexpr Scheme schemes[] = {
    {"embedded", open_embedded_url},
    {"redis", open_tcp},
    {"valkey", open_tcp},
    {"redis+unix", open_unix},
    {"valkey+unix", open_unix},
    {"rediss", not_offered_yet},
    {"valkeys", not_offered_yet},
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
