#include "sluice/open.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/duration.hpp"
#include "open/embedded.hpp"
#include "open/url.hpp"
#include "redis/redis_store.hpp"

namespace sluice {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::string_view offered =
    "embedded:, embedded:/path, redis://, redis+unix://, valkey://, valkey+unix://";

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

redis::RedisOptions server_options(const Url& url, const OpenOptions& options) {
  static constexpr std::string_view known[] = {"name", "db", "timeout", "connect_timeout", "spin"};
  refuse_unknown_settings(url, known);
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

std::unique_ptr<Store> open_tcp(const Url& url, const OpenOptions& options) {
  if (!url.has_authority || url.host.empty())
    refuse(fmt::format("{0}: needs a host: {0}://127.0.0.1:6379", url.scheme));
  auto server = server_options(url, options);
  server.endpoint.host = url.host;
  server.endpoint.port = url.port.value_or(6379);
  if (!url.path.empty() && url.path != "/") {
    if (url.query.contains("db")) refuse("the URL names the database twice, as /N and as db=N");
    server.database = database_of(std::string_view{url.path}.substr(1));
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
