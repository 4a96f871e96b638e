#include "proxy/config/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "proxy/config/settings.hpp"
#include "proxy/memcached/commands.hpp"
#include "proxy/redis/redis_protocol.hpp"

namespace sluice::proxy::config {
namespace {

constexpr std::size_t most_pools = 1024;
constexpr std::size_t most_file_bytes = std::size_t{4} << 20;

/// twemproxy's order of names: the shorter first, then by bytes.
constexpr auto by_name = [](const auto& thing) {
  return std::pair<std::size_t, std::string_view>{thing.name.size(), thing.name};
};

[[noreturn]] void refuse(const FilePlace& place, const std::string& why) {
  throw Problem{place.line, why};
}

void sort_servers(PoolSettings& pool) {
  std::ranges::sort(pool.servers, {}, by_name);
  const auto twice = std::ranges::adjacent_find(pool.servers, {}, &ServerSettings::name);
  if (twice != pool.servers.end())
    refuse(std::max(twice->place, std::next(twice)->place,
                    [](auto a, auto b) { return a.line < b.line; }),
           fmt::format("two servers of the pool '{}' have the name '{}'; give one of them another "
                       "name after a space",
                       pool.name, twice->name));
  std::uint64_t weights = 0;
  for (const auto& server : pool.servers) weights += server.weight;
  if (weights > std::numeric_limits<std::uint32_t>::max())
    refuse(pool.place, fmt::format("the weights of the pool '{}' add up to {}; make them smaller",
                                   pool.name, weights));
}

void check_tls(const PoolSettings& pool) {
  const auto& tls = pool.listen_tls;
  if (tls.on && (tls.certificate.empty() || tls.key.empty()))
    refuse(pool.place,
           fmt::format("listen_tls of the pool '{}' needs a certificate and its key", pool.name));
  for (const auto& [name, towards] : {std::pair{"server_tls", &pool.server_tls},
                                      std::pair{"sentinel_tls", &pool.tls_to_sentinels()}})
    if (towards->certificate.empty() != towards->key.empty())
      refuse(pool.place,
             fmt::format("{} of the pool '{}' has a certificate or a key; it needs both, or none",
                         name, pool.name));
}

/// Why this entry of `allow` cannot be meant; empty: it can.
std::string_view fault_of_allowed(const PoolSettings& pool, const std::string& name) {
  bool known = false;
  for (const auto& spec : resp::all_commands()) {
    if (!pool.redis || !is_allowed(spec.name, {&name, 1})) continue;
    known = true;
    const auto route = route_of(spec);
    if (!route || route->needs_consent || route->route != Route::refused) return {};
  }
  if (const auto* const command = find_memcached_command(name); !pool.redis && command) {
    known = true;
    if (command->kind != MemcachedKind::never) return {};
  }
  return known ? "is never served: ask the server itself" : "is no command that is known here";
}

void check_allow(const PoolSettings& pool) {
  for (const auto& name : pool.allow)
    if (const auto fault = fault_of_allowed(pool, name); !fault.empty())
      refuse(pool.place, fmt::format("'{}' in allow of the pool '{}' {}", name, pool.name, fault));
}

void check_rights(const PoolSettings& pool) {
  if (pool.users.empty()) return;
  const TaughtCommands taught{pool.commands};
  for (const auto& user : pool.users) {
    if (user.acl.empty()) continue;
    try {
      front::Rights{user.acl, taught};
    } catch (const Error& wrong) {
      refuse(user.place, fmt::format("the user '{}' of the pool '{}': {}", user.name, pool.name,
                                     wrong.message()));
    }
  }
}

/// Why `text` is not host:port of one machine; empty: it is.
std::string fault_of_address(std::string_view text) {
  try {
    if (parse_address(text).is_unix()) return fmt::format("'{}' is a path; write host:port", text);
  } catch (const Error& wrong) {
    return std::string{wrong.message()};
  }
  const bool is_any = text.starts_with(':') || text.starts_with('*');
  return is_any ? fmt::format("'{}' names no host; write host:port", text) : std::string{};
}

/// `name`: of the setting of these addresses.
void check_addresses(const PoolSettings& pool, std::string_view name,
                     const std::vector<std::string>& entries) {
  for (const auto& entry : entries)
    if (const auto fault = fault_of_address(entry); !fault.empty())
      refuse(pool.place, fmt::format("{} of the pool '{}': {}", name, pool.name, fault));
}

void check_replicas(const PoolSettings& pool) {
  if (pool.read_from == ReadFrom::master) return;
  if (pool.sentinels.empty() && !pool.is_of_cluster())
    refuse(
        pool.place,
        fmt::format("the pool '{}' has 'read_from: replica', but only Sentinels or a cluster tell "
                    "it of replicas; name them, or remove read_from",
                    pool.name));
  if (pool.compat == Compat::strict)
    refuse(pool.place, fmt::format("the pool '{}' has 'read_from: replica', which twemproxy does "
                                   "not know: remove it, or 'compat: strict'",
                                   pool.name));
}

void check_sentinels(const PoolSettings& pool) {
  if (pool.sentinels.empty()) {
    if (!pool.sentinel_user.empty() || !pool.sentinel_password.empty() || pool.sentinel_tls)
      refuse(pool.place, fmt::format("the pool '{}' has a user, a password or TLS of Sentinels, "
                                     "and no sentinels",
                                     pool.name));
    return;
  }
  if (!pool.redis)
    refuse(pool.place, fmt::format("the pool '{}' has sentinels, but memcached knows none; write "
                                   "'redis: true', or remove sentinels",
                                   pool.name));
  check_addresses(pool, "sentinels", pool.sentinels);
  for (const auto& server : pool.servers)  // that of an address is no name
    if (server.name == name_of(server.text, server.endpoint) && server.name.contains(':'))
      refuse(server.place, fmt::format("the server '{}' of the pool '{}' names no master of its "
                                       "Sentinels; write the name behind a space",
                                       server.name, pool.name));
}

/// What a pool says that its cluster decides.
std::string_view contradiction(const PoolSettings& pool) {
  const PoolSettings usual;
  if (!pool.redis) return "memcached has no clusters: write 'redis: true'";
  if (!pool.servers.empty()) return "it tells its nodes itself: remove servers";
  if (!pool.sentinels.empty()) return "it sees to its failovers itself: remove sentinels";
  if (pool.distribution != usual.distribution || pool.hash != usual.hash || pool.hash_tag ||
      pool.key_bytes != usual.key_bytes)
    return "it says itself where a key is: remove distribution, hash, hash_tag and key_bytes";
  if (pool.auto_eject_hosts || pool.on_failure != usual.on_failure)
    return "it replaces a node that fails itself: remove auto_eject_hosts and on_failure";
  if (pool.redis_db != 0) return "it has the database 0 alone: remove redis_db";
  if (pool.compat == Compat::strict) return "twemproxy knows none: remove 'compat: strict'";
  return {};
}

void check_cluster(const PoolSettings& pool) {
  if (!pool.is_of_cluster()) return;
  if (const auto why = contradiction(pool); !why.empty())
    refuse(pool.place, fmt::format("the pool '{}' is before a cluster, and {}", pool.name, why));
  check_addresses(pool, "cluster", pool.cluster);
}

void check_pool(const PoolSettings& pool) {
  if (pool.listen.text.empty())
    refuse(pool.place, fmt::format("the pool '{}' has no listen; say where clients connect, as "
                                   "'listen: 127.0.0.1:22121'",
                                   pool.name));
  if (pool.servers.empty() && !pool.is_of_cluster())
    refuse(pool.place, fmt::format("the pool '{}' has no servers; list them as "
                                   "'- host:port:weight' under 'servers:'",
                                   pool.name));
  const bool wants_redis = !pool.redis_auth.empty() || !pool.users.empty();
  if (wants_redis && !pool.redis)
    refuse(pool.place, fmt::format("the pool '{}' has passwords, but memcached knows none; write "
                                   "'redis: true', or remove redis_auth and users",
                                   pool.name));
  if (pool.compat == Compat::strict && !pool.users.empty())
    refuse(pool.place, fmt::format("the pool '{}' has users, but with 'compat: strict' AUTH takes "
                                   "one password alone, as in twemproxy: use redis_auth",
                                   pool.name));
  if ((pool.rate_limit.per_user || pool.rate_limit.bytes_per_user) && !pool.redis)
    refuse(pool.place, fmt::format("rate_limit of the pool '{}' is for users, but memcached knows "
                                   "none; write per_address or bytes_per_address",
                                   pool.name));
  if (!pool.commands.empty() && !pool.redis)
    refuse(pool.place, fmt::format("the pool '{}' has commands of Redis; write 'redis: true', or "
                                   "remove commands",
                                   pool.name));
  check_tls(pool);
  check_sentinels(pool);
  check_replicas(pool);
  check_cluster(pool);
  check_allow(pool);
  check_rights(pool);
}

PoolSettings read_pool(const Node& node, std::size_t position) {
  PoolSettings pool;
  pool.name = node.key;
  pool.place = {node.line, position};
  if (pool.name.empty()) refuse(pool.place, "a pool needs a name");
  if (node.flow) refuse(pool.place, "write each setting of a pool on a line of its own");
  try {
    read_members(node, pool);
  } catch (const Problem& wrong) {
    throw Problem{wrong.line(), fmt::format("pool '{}': {}", pool.name, wrong.what())};
  }
  sort_servers(pool);
  check_pool(pool);
  return pool;
}

/// No two pools with one name or one address.
void check_pools(std::vector<PoolSettings>& pools) {
  const auto address = [](const PoolSettings& pool) -> const std::string& {
    return pool.listen.text;
  };
  std::ranges::sort(pools, {}, address);
  if (const auto twice = std::ranges::adjacent_find(pools, {}, address); twice != pools.end())
    refuse(std::next(twice)->place,
           fmt::format("the pools '{}' and '{}' both listen at {}; give one another address",
                       twice->name, std::next(twice)->name, twice->listen.text));
  std::ranges::sort(pools, {}, by_name);
  if (const auto twice = std::ranges::adjacent_find(pools, {}, &PoolSettings::name);
      twice != pools.end())
    refuse(std::next(twice)->place,
           fmt::format("two pools have the name '{}'; rename one", twice->name));
}

const PoolSettings* find_pool(const std::vector<PoolSettings>& pools, std::string_view name) {
  const auto found = std::ranges::find(pools, name, &PoolSettings::name);
  return found == pools.end() ? nullptr : &*found;
}

/// Why `pool` cannot be mirrored to `second`; empty: it can.
std::string fault_of_mirror(const PoolSettings& pool, const PoolSettings& second) {
  if (second.redis != pool.redis) return "speaks another protocol";
  if (pool.compat == Compat::strict || second.compat == Compat::strict)
    return "cannot be one: 'compat: strict' of either pool is twemproxy, which has no mirrors";
  for (const auto& server : pool.servers)
    if (std::ranges::find(second.servers, server.endpoint, &ServerSettings::endpoint) !=
        second.servers.end())
      return fmt::format("has the server {}, too: its writes would be done twice",
                         net::to_string(server.endpoint));
  return {};
}

/// Each leads to another pool of the same kind, and none back to where it began.
void check_mirrors(const std::vector<PoolSettings>& pools) {
  for (const auto& pool : pools) {
    if (pool.mirror.pool.empty()) continue;
    const auto refuse_mirror = [&](std::string_view why) {
      refuse(pool.place,
             fmt::format("the mirror '{}' of the pool '{}' {}", pool.mirror.pool, pool.name, why));
    };
    const auto* const second = find_pool(pools, pool.mirror.pool);
    if (!second) refuse_mirror("is no pool of this file");
    const auto* next = second;
    for (std::size_t steps = 0; next && steps < pools.size(); ++steps) {
      if (next == &pool) refuse_mirror("leads back to it: writes would go round for ever");
      next = find_pool(pools, next->mirror.pool);
    }
    if (const auto fault = fault_of_mirror(pool, *second); !fault.empty()) refuse_mirror(fault);
  }
}

/// Settings of the process, unless a pool happens to have that name.
bool is_process(const Node& node) {
  return node.key == "sluice" && std::ranges::none_of(node.items, [](const Node& member) {
           return member.key == "listen" || member.key == "servers" || member.key == "cluster";
         });
}

Config config_of(const Node& root) {
  if (root.kind != Node::Kind::map || root.flow)
    throw Problem{root.line, "write the name of a pool, a colon, and its settings below, indented"};
  Config config;
  bool process_seen = false;
  for (const auto& node : root.items) {
    if (is_process(node)) {
      if (std::exchange(process_seen, true)) throw Problem{node.line, "'sluice' is there twice"};
      read_members(node, config.process);
    } else {
      if (config.pools.size() == most_pools)
        throw Problem{node.line, fmt::format("more than {} pools", most_pools)};
      config.pools.push_back(read_pool(node, config.pools.size()));
    }
  }
  if (config.pools.empty())
    throw Problem{1, "there is no pool; write a name, a colon, and below it listen and servers"};
  check_pools(config.pools);
  check_mirrors(config.pools);
  return config;
}

}  // namespace

net::TlsFiles files_of(const TlsSettings& settings) {
  return {.certificate = settings.certificate,
          .key = settings.key,
          .ca = settings.ca,
          .verify = settings.verify,
          .least = net::TlsVersion::v1_2};
}

Config read(std::string_view yaml, std::string_view file) {
  try {
    return config_of(parse_document(yaml));
  } catch (const Problem& wrong) {
    throw Error{Errc::bad_argument, fmt::format("{}:{}: {}", file, wrong.line(), wrong.what())};
  }
}

Config load(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string text;
  if (file) {
    text.resize(most_file_bytes + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof())
    throw Error{Errc::bad_argument,
                text.size() > most_file_bytes
                    ? fmt::format("{}: the file has more than {} bytes", path, most_file_bytes)
                    : fmt::format("{}: the file cannot be read: {}", path,
                                  std::generic_category().message(errno))};
  return read(text, path);
}

Config check(const std::string& path) {
  auto config = load(path);
  for (const auto& pool : config.pools) try {
      net::resolve(pool.listen.endpoint);
    } catch (const Error& unknown) {
      throw Error{Errc::bad_argument,
                  fmt::format("{}:{}: the pool '{}' cannot listen at {}: {}", path, pool.place.line,
                              pool.name, pool.listen.text, unknown.message())};
    }
  return config;
}

}  // namespace sluice::proxy::config
