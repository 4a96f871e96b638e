#include "proxy/config/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::proxy {

namespace {

std::uint32_t point_of(const Ring& ring, std::uint32_t hash) {
  if (ring.distribution() == Distribution::modula)
    return hash % static_cast<std::uint32_t>(ring.places());
  const auto points = ring.points();
  const auto found = std::ranges::lower_bound(points, hash, {}, &Ring::Point::value);
  return found == points.end() ? points.front().value : found->value;
}

}  // namespace

Explanation explain(const PoolSettings& pool, std::string_view key) {
  const auto homes = make_homes(pool);
  Explanation result{.pool = pool.name,
                     .hashed_part = std::string{hashed_part(key, pool.hash_tag)},
                     .hash = homes.hash_of(key)};
  if (pool.distribution == Distribution::random && pool.servers.size() > 1) return result;
  const auto& server = pool.servers.at(homes.of(key));
  result.server = server.name;
  result.address = net::to_string(server.endpoint);
  result.point = point_of(homes.ring(), result.hash);
  return result;
}

std::string text_of(const Explanation& explanation) {
  if (explanation.server.empty())
    return fmt::format("{}: any server, whatever the key (distribution: random)", explanation.pool);
  return fmt::format("{}: {} at {} (hashed part \"{}\", hash 0x{:08x}, point 0x{:08x})",
                     explanation.pool, explanation.server, explanation.address,
                     explanation.hashed_part, explanation.hash, explanation.point);
}

}  // namespace sluice::proxy
