/// A move of keys from the rings of one configuration to those of another: which pools it concerns,
/// where it cannot be done, and how a pool is served in each phase. See
/// docs/decisions/0020-keys-move-between-rings.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config/config.hpp"

namespace sluice::proxy::config {

/// By whom proxies speak with servers while keys move. Whoever logs in otherwise is fenced out.
struct MoveUser {
  std::string name, password;
};

/// A pool whose ring changes.
struct MovingPool {
  const PoolSettings* before;
  const PoolSettings* after;
};

/// Throws Error{bad_argument} if keys of one of them cannot be moved, or if there is none.
std::vector<MovingPool> moving_pools(const Config& before, const Config& after);

/// Equal where the same keys move between the same servers: by it a proxy and its mover know that
/// they mean the same.
std::string print_of_move(const Config& before, const Config& after);

/// `config` with the rings of `other`, for pools that both have.
Config with_rings_of(Config config, const Config& other);
bool has_rings_of(const Config& config, const Config& other);

/// `before`, with the pools whose rings change in this phase.
Config in_phase(const Config& before, const Config& after, RingMove::Phase phase,
                const MoveUser& user);

/// The servers of the pool, then those of the other ring of its move.
std::vector<ServerSettings> all_servers(const PoolSettings& pool);

/// Where keys are, and where they go.
class Journey {
 public:
  explicit Journey(const MovingPool& pool);

  /// Empty: it stays at `from`, or has nothing to do there.
  std::optional<net::Endpoint> destination(const net::Endpoint& from, std::string_view key) const;

 private:
  MovingPool pool_;
  Homes before_, after_;
};

}  // namespace sluice::proxy::config
