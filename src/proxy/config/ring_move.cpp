#include "proxy/config/ring_move.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/sha1.hpp"
#include "proxy/config/read.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::config {
namespace {

const PoolSettings* find_pool_named(const Config& config, std::string_view name) {
  const auto found = std::ranges::find(config.pools, name, &PoolSettings::name);
  return found == config.pools.end() ? nullptr : &*found;
}

bool have_same_ring(const PoolSettings& one, const PoolSettings& other) {
  const auto what = [](const PoolSettings& pool) {
    return std::tie(pool.servers, pool.distribution, pool.hash, pool.hash_tag, pool.key_bytes,
                    pool.cluster);
  };
  return what(one) == what(other);
}

/// Why keys of such a pool cannot be moved; empty: they can.
std::string_view obstacle(const PoolSettings& pool) {
  if (pool.is_of_cluster()) return "a cluster moves its keys itself";
  if (!pool.redis) return "its servers are memcached, which hands no key to another server";
  if (pool.compat == Compat::strict)
    return "`compat: strict` serves as twemproxy, which moves none";
  if (pool.distribution == Distribution::random)
    return "with `distribution: random` keys have no home";
  if (pool.auto_eject_hosts && pool.on_failure == OnFailure::rehash)
    return "an ejected server's keys would have a third home: set `on_failure: fail`, reload, and "
           "move then";
  if (!pool.sentinels.empty())
    return "its servers are where Sentinels say, and another master may have less than moved away";
  for (const auto& server : pool.servers)
    if (server.endpoint.is_unix())
      return "servers have to reach each other: give host and port instead of the path of a socket";
  return {};
}

void take_ring(PoolSettings& pool, const PoolSettings& other) {
  pool.servers = other.servers;
  pool.distribution = other.distribution;
  pool.hash = other.hash;
  pool.hash_tag = other.hash_tag;
  pool.key_bytes = other.key_bytes;
}

std::string text_of_ring(const PoolSettings& pool) {
  auto text =
      fmt::format("{} {} {}{} {}:", to_string(pool.distribution), to_string(pool.hash),
                  pool.hash_tag ? pool.hash_tag->open : ' ',
                  pool.hash_tag ? pool.hash_tag->close : ' ', static_cast<int>(pool.key_bytes));
  for (const auto& server : pool.servers) text += to_string(server) + ';';
  return text;
}

}  // namespace

std::vector<MovingPool> moving_pools(const Config& before, const Config& after) {
  std::vector<MovingPool> pools;
  for (const auto& pool : before.pools) {
    const auto* const now = find_pool_named(after, pool.name);
    if (!now || have_same_ring(pool, *now)) continue;
    for (const auto* const one : {&pool, now})
      if (const auto why = obstacle(*one); !why.empty())
        throw Error{Errc::bad_argument,
                    fmt::format("pool '{}': its keys cannot be moved: {}", pool.name, why)};
    pools.push_back({&pool, now});
  }
  if (pools.empty())
    throw Error{Errc::bad_argument,
                "no pool that is in both files has other servers: no key moves"};
  return pools;
}

std::string print_of_move(const Config& before, const Config& after) {
  std::string text;
  for (const auto& pool : moving_pools(before, after))
    text += fmt::format("{} {} -> {}\n", pool.before->name, text_of_ring(*pool.before),
                        text_of_ring(*pool.after));
  return sha1_hex(text);
}

Config with_rings_of(Config config, const Config& other) {
  for (auto& pool : config.pools)
    if (const auto* const its = find_pool_named(other, pool.name)) take_ring(pool, *its);
  return config;
}

bool has_rings_of(const Config& config, const Config& other) {
  return std::ranges::all_of(config.pools, [&](const PoolSettings& pool) {
    const auto* const its = find_pool_named(other, pool.name);
    return !its || have_same_ring(pool, *its);
  });
}

Config in_phase(const Config& before, const Config& after, RingMove::Phase phase,
                const MoveUser& user) {
  Config config = before;
  for (const auto& pool : moving_pools(before, after)) {
    auto& settings = *std::ranges::find(config.pools, pool.before->name, &PoolSettings::name);
    const bool is_new = phase == RingMove::Phase::moving;
    settings.move = std::make_shared<const RingMove>(
        phase, std::make_shared<const PoolSettings>(is_new ? *pool.before : *pool.after));
    settings.server_user = user.name;
    settings.server_password = user.password;
    if (is_new) take_ring(settings, *pool.after);
  }
  return config;
}

std::vector<ServerSettings> all_servers(const PoolSettings& pool) {
  auto all = pool.servers;
  if (!pool.move) return all;
  for (auto server : pool.move->other->servers) {
    if (std::ranges::find(all, server.endpoint, &ServerSettings::endpoint) != all.end()) continue;
    // Statistics go by the name, and this one may have been given to another server.
    if (std::ranges::find(all, server.name, &ServerSettings::name) != all.end())
      server.name = net::to_string(server.endpoint);
    all.push_back(std::move(server));
  }
  return all;
}

Journey::Journey(const MovingPool& pool)
    : pool_(pool), before_(make_homes(*pool.before)), after_(make_homes(*pool.after)) {}

std::optional<net::Endpoint> Journey::destination(const net::Endpoint& from,
                                                  std::string_view key) const {
  if (pool_.before->servers[before_.of(key)].endpoint != from) return std::nullopt;
  const auto& to = pool_.after->servers[after_.of(key)].endpoint;
  return to == from ? std::nullopt : std::optional{to};
}

}  // namespace sluice::proxy::config
