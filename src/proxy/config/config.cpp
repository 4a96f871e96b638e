#include "proxy/config/config.hpp"

namespace sluice::proxy {

std::vector<RingServer> ring_servers(const PoolSettings& pool) {
  std::vector<RingServer> servers;
  servers.reserve(pool.servers.size());
  for (const auto& server : pool.servers) servers.push_back({server.name, server.weight});
  return servers;
}

Homes make_homes(const PoolSettings& pool, std::span<const std::uint32_t> live) {
  return {pool.hash, pool.key_bytes, pool.hash_tag,
          Ring{pool.distribution, ring_servers(pool), live}, pool.servers.size() == 1};
}

}  // namespace sluice::proxy
