/// The synchronizers that can be played, one row each.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "lock/simulation/profile.hpp"
#include "sluice/held.hpp"
#include "support/history.hpp"

namespace sluice::simulation {

/// How somebody wants to be in.
enum class Mode { exclusive, shared };

/// One synchronizer by one name, in one process.
class SimLock {
 public:
  virtual ~SimLock() = default;
  /// Makes it usable; again does no harm.
  virtual Task<void> prepare() { return Task<void>::ready(); }
  /// `owner` may be null.
  virtual Task<std::optional<Held>> enter(const Owner* owner, Mode mode, std::uint32_t permits,
                                          std::chrono::milliseconds wait, std::stop_token stop) = 0;
  /// How many permits are free, where there are permits.
  virtual Task<std::int64_t> free_permits() { return Task<std::int64_t>::ready(0); }
};

struct Primitive {
  std::string_view name;
  std::unique_ptr<SimLock> (*open)(Store& store, const std::string& name, const Profile& profile);
  bool owners = true;         ///< may enter again
  bool readers = false;       ///< may share
  std::uint32_t permits = 0;  ///< how many there are; 0: it has none
  std::uint32_t most = 1;     ///< permits at once
  bool first_come = false;    ///< is first served, in the way of Redisson's fair lock
  /// So many processes may stand still or be cut off at once: each costs those behind it two
  /// seconds when its turn comes, and no more.
  std::size_t steps_over = 0;
  /// Keys that may stay for ever, by their beginnings, beside the fencing counters.
  std::span<const std::string_view> stay{};
  /// Keys that may stay for two minutes.
  std::span<const std::string_view> fade{};
};

std::span<const Primitive> all_primitives();
/// Throws std::invalid_argument.
const Primitive& primitive_named(std::string_view name);

}  // namespace sluice::simulation
