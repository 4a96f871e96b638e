/// The synchronizers that can be played, one row each.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lock/simulation/profile.hpp"
#include "sluice/held.hpp"
#include "support/history.hpp"

namespace sluice::simulation {

/// How somebody wants to be in.
enum class Mode { exclusive, shared };

/// A hold of one name or of several. Its end is the release.
class SimHold {
 public:
  virtual ~SimHold() = default;
  virtual bool valid() const = 0;
  virtual std::chrono::nanoseconds valid_for() const = 0;
  virtual FencingToken token(const std::string& name) const = 0;
  virtual void on_lost(std::function<void(LostCause)> callback) = 0;
  virtual Task<ReleaseOutcome> release() = 0;
};
using SimHoldPtr = std::unique_ptr<SimHold>;

/// One synchronizer by one name or several, in one process.
class SimLock {
 public:
  virtual ~SimLock() = default;
  /// Makes it usable; again does no harm.
  virtual Task<void> prepare() { return Task<void>::ready(); }
  /// Null: refused. `owner` may be null.
  virtual Task<SimHoldPtr> enter(const Owner* owner, Mode mode, std::uint32_t permits,
                                 std::chrono::milliseconds wait, std::stop_token stop) = 0;
  /// What people see of it.
  virtual Task<void> look() { return Task<void>::ready(); }
  /// Ends whatever hold there is. False: it was free, or there is no such verb.
  virtual Task<bool> force() { return Task<bool>::ready(false); }
  /// Changes the number of permits and changes it back.
  virtual Task<void> change() { return Task<void>::ready(); }
  /// How many permits are free, where there are permits.
  virtual Task<std::int64_t> free_permits() { return Task<std::int64_t>::ready(0); }
};

/// One of each server.
using Stores = std::span<Store* const>;

struct Primitive {
  std::string_view name;
  std::unique_ptr<SimLock> (*open)(Stores stores, const std::string& name, const Profile& profile);
  /// Opens one that has all names, to be played beside those of one name; null: there is none.
  std::unique_ptr<SimLock> (*open_all)(Stores stores, const std::vector<std::string>& names,
                                       const Profile& profile) = nullptr;
  bool owners = true;       ///< may enter again
  bool readers = false;     ///< may share
  bool permits = false;     ///< there is a number of them
  std::uint32_t most = 1;   ///< permits at once
  bool first_come = false;  ///< is first served, in the way of Redisson's fair lock
  bool in_order = false;    ///< is first served, of those that want to be in the same way
  /// So many processes may stand still or be cut off at once: each costs those behind it two
  /// seconds when its turn comes, and no more.
  std::size_t steps_over = 0;
  std::size_t servers = 1;
  bool is_held = true;  ///< somebody is in, and leaves
  /// Keys that may stay for ever, by their beginnings, beside the fencing counters.
  std::span<const std::string_view> stay{};
  /// Keys that may stay for two minutes.
  std::span<const std::string_view> fade{};
};

std::span<const Primitive> all_primitives();
/// Throws std::invalid_argument.
const Primitive& primitive_named(std::string_view name);

}  // namespace sluice::simulation
