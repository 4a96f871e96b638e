/// One hold of one owner, from the grant to its end: held -> released, or held -> lost. Nothing
/// leads back.
///
/// It comes into being with the grant in hand, so that there is nothing to renew before, and leaves
/// the watchdog before its release is sent; a renewal that is still under way then finds another
/// request id, or none, in Redis.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <vector>

#include "base/fork.hpp"
#include "lock/hold/names.hpp"
#include "sluice/lock.hpp"

namespace sluice::lock {

class Watchdog;

enum class HoldState : std::uint8_t { held, released, lost };

/// How long a hold lasts; see MutexOptions.
struct Terms {
  std::chrono::milliseconds lease{};
  std::chrono::milliseconds margin{};
  bool watched = true;

  std::chrono::nanoseconds interval() const noexcept { return std::chrono::nanoseconds{lease} / 3; }
  /// Until when a hold is certain whose request was sent at `sent`.
  SteadyTime certain_until(SteadyTime sent) const noexcept { return sent + lease - margin; }
};

struct Hold {
  // fixed with the grant
  std::shared_ptr<Watchdog> watchdog;
  std::shared_ptr<const Names> names;
  std::string owner;
  std::string request;  ///< names this hold in Redis, and no other ever
  FencingToken token;
  Terms terms;
  const unsigned forks = fork_count();  ///< of the process that holds

  // written under the watchdog's mutex, read by any thread
  std::atomic<HoldState> state{HoldState::held};
  std::atomic<SteadyTime> certain_until{};

  // under the watchdog's mutex
  std::uint32_t entries = 1;
  std::size_t place = 0;  ///< among the watchdog's holds
  SteadyTime renew_at{};
  bool renewing = false;    ///< a renewal is under way
  bool unanswered = false;  ///< the last renewal failed
  LostCause cause{};
  std::optional<std::stop_source> stop;  ///< made when somebody asks for it
  std::vector<std::function<void(LostCause)>> callbacks;
};

}  // namespace sluice::lock
