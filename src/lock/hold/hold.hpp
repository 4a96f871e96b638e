/// One hold of one owner, from the grant to its end: held -> released, or held -> lost. Nothing
/// leads back.
///
/// A Hold is made when the grant is there, so that nothing is renewed before. It leaves the
/// watchdog before its release is sent: a renewal that is still under way then finds another
/// request id, or none, in Redis, and prolongs nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/process.hpp"
#include "lock/hold/resource.hpp"
#include "sluice/held.hpp"

namespace sluice::lock {

enum class HoldState : std::uint8_t { held, released, lost };

/// How long a hold lasts; see MutexOptions.
struct Terms {
  std::chrono::milliseconds lease{};
  std::chrono::milliseconds margin{};
  bool watched = true;

  /// Throws Error (bad_argument): a lease that is not from 10 ms to 24 h, a margin that leaves
  /// nothing of it.
  static Terms of(std::chrono::milliseconds lease, std::optional<std::chrono::milliseconds> margin,
                  bool watched);
  friend auto operator<=>(const Terms&, const Terms&) = default;

  /// The part of a margin that is for the whole milliseconds in which a server counts.
  static constexpr std::chrono::milliseconds rounding{2};

  /// By how much two clocks may differ after so long, where the margin is enough for a lease.
  std::chrono::nanoseconds drift_over(std::chrono::nanoseconds time) const noexcept {
    const auto of_a_lease = std::max(margin - rounding, std::chrono::milliseconds{0});
    return std::chrono::abs(time) / lease.count() * of_a_lease.count();
  }
  /// How long a waiter that is handed the hold by message has to say that it took over, by an early
  /// renewal or by asking once more. A process that stands still costs those behind it that time,
  /// and until another one has looked: two seconds in all.
  std::chrono::milliseconds claim() const noexcept {
    return std::min(lease, std::max(std::chrono::milliseconds{1500}, 2 * margin));
  }
  /// Whether a hold that was handed over is confirmed by asking: no renewal makes a lease of the
  /// claim.
  bool asks_after_hand_over() const noexcept { return !watched && claim() < lease; }
  /// Of renewals. With a lease of 30 s an outage of 20 s begins 7.5 s after the last renewal at
  /// worst, and leaves 2 s to connect and renew.
  std::chrono::nanoseconds interval() const noexcept { return std::chrono::nanoseconds{lease} / 4; }
  /// Until when a hold is certain whose request was sent at `sent`.
  SteadyTime certain_until(SteadyTime sent) const noexcept { return sent + lease - margin; }
};

struct Hold {
  // fixed with the grant
  std::shared_ptr<Resource> resource;
  Identity who;
  FencingToken token;
  Terms terms;
  SteadyTime began{};
  const unsigned forks = fork_count();  ///< of the process that holds
  bool handed_on = false;               ///< by another owner of this process, without the server
  bool queued = false;                  ///< its request had a place in a queue of the server

  // written under the watchdog's mutex, read by any thread
  std::atomic<HoldState> state{HoldState::held};
  std::atomic<SteadyTime> certain_until{};

  // under the watchdog's mutex
  SteadyTime look_at{};  ///< when the watchdog looks at it
  SteadyTime renew_at = SteadyTime::max();
  SteadyTime renewal_due{};  ///< of the renewal under way
  SteadyTime risk_at = SteadyTime::max();
  std::uint32_t place = 0;  ///< among the watchdog's holds
  std::uint32_t entries = 1;
  bool renewing = false;    ///< a renewal is under way
  bool unanswered = false;  ///< the last renewal failed
  bool warned = false;      ///< of a risk, and not confirmed since
  bool awaited = false;     ///< waiters of this process wait behind it; see Watchdog::note_waiter
  LostCause cause{};
  /// Whom to tell of what becomes of it. Most holds have nobody.
  struct Listeners {
    std::optional<std::stop_source> stop;  ///< made when a caller asks for it
    std::vector<std::function<void(LostCause)>> on_lost;
    std::vector<std::function<void(Risk)>> on_risk;
  };
  std::unique_ptr<Listeners> listeners;

  Watchdog& watchdog() const noexcept { return resource->watchdog(); }
};

/// A hold as the server granted it.
struct Grant {
  FencingToken token;
  SteadyTime since;                 ///< not later than when the server granted it
  std::chrono::milliseconds ttl{};  ///< that the server gave it then
  bool handed_on = false;           ///< by another owner of this process, without the server
  bool awaited = false;             ///< others of this process wait behind it
  bool queued = false;              ///< the request had a place in a queue of the server

  /// When a hold that came by message has to be confirmed.
  SteadyTime confirm_at() const noexcept { return since + ttl / 3; }
};

}  // namespace sluice::lock
