/// At most so many at a time, each by a permit that has a name.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/held.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// Names one permit, as long as it is held, to every process.
struct PermitId {
  std::array<std::uint8_t, 16> bytes{};

  /// 32 hex digits, lower case: as Redisson's API shows it.
  std::string text() const;
  /// The inverse; empty: not 32 hex digits.
  static std::optional<PermitId> parse(std::string_view text);

  friend auto operator<=>(const PermitId&, const PermitId&) = default;
};

/// A lease without an end: the permit comes back only by a release.
inline constexpr std::chrono::milliseconds unlimited_lease{922337203685477};

/// A permit that this process holds. Its end is the release.
class [[nodiscard("the permit comes back with the end of this object")]] HeldPermit : public Held {
 public:
  /// Holds nothing.
  HeldPermit() noexcept = default;

  /// The permit, also after its release.
  const PermitId& id() const noexcept { return id_; }

 private:
  friend class PermitSemaphore;
  HeldPermit(Held held, PermitId id) noexcept : Held{std::move(held)}, id_{id} {}

  PermitId id_{};
};

/// Permits shared by every process that names them, Java processes with Redisson's
/// RPermitExpirableSemaphore included. Each permit has an id, by which any process may give it
/// back.
///
/// Guarantee: as Semaphore's. A permit comes back once: by its release, or when its lease is over,
///   whichever is first; the later one does nothing. The tests that hold it:
///   docs/semaphore.md#guarantee.
/// Not guaranteed: as Semaphore's. Java programs write and compare times of their own clocks, ours
///   those of the server: where these differ, a permit of the one ends for the other so much sooner
///   or later.
/// Threads: any. As Semaphore.
/// In Redis: string NAME, the free permits; sorted set {NAME}:timeout, the permits' 16 bytes by the
///   time when they end; channel redisson_sc:{NAME}: all as Redisson's. Beside them hash
///   sluice_permit_people:{NAME}, who holds; zset sluice_permit_line:{NAME} and hash
///   sluice_permit_turns:{NAME} while somebody waits (2 minutes); strings
///   sluice_permit_done:{NAME}:ID for a minute after a change. Round trips: as Semaphore.
///
///     PermitSemaphore desks{*store, "desks"};
///     desks.ensure_permits(4).get();
///     const auto desk = desks.take(1h).get();  // and elsewhere, from its text:
///     desks.release(*PermitId::parse(text)).get();
class PermitSemaphore : public SemaphoreBase {
 public:
  /// How many permits one call may acquire.
  static constexpr std::uint32_t most_at_once = 1000;

  /// `options.lease` and `watchdog` are of what `acquire` gives. Throws as Semaphore's.
  explicit PermitSemaphore(Store& store, std::string name, SemaphoreOptions options = {});

  /// Sets how many there are in all, those held included. Fewer than are held: nobody gets one
  /// until enough came back. Throws Error; the same call again is safe.
  Task<void> set_permits(std::uint32_t permits);

  /// Waits until a permit is held. Throws as Semaphore::acquire.
  Task<HeldPermit> acquire();
  /// Waits up to `wait`, or until `stop` is requested. Empty: refused. Throws as `acquire`.
  Task<std::optional<HeldPermit>> try_acquire(std::chrono::milliseconds wait = {},
                                              std::stop_token stop = {});
  /// All of so many, from 1 to `most_at_once`, or none: empty. O(permits).
  Task<std::vector<HeldPermit>> try_acquire_many(std::uint32_t permits,
                                                 std::chrono::milliseconds wait = {},
                                                 std::stop_token stop = {});

  /// A permit that is not renewed: it lasts until `release` with its id, or until the end of
  /// `lease`, from 10 ms to 24 h, or `unlimited_lease`. Empty: refused. Throws as `acquire`.
  Task<std::optional<PermitId>> take(std::chrono::milliseconds lease,
                                     std::chrono::milliseconds wait = {},
                                     std::stop_token stop = {});
  /// Gives a permit back, any process's. False: its lease was over, or it came back before.
  /// A repeated request is answered as the first. Throws Error (effect none or unknown; the same
  /// call again is safe, and then false).
  Task<bool> release(PermitId permit);
  /// Lets a permit end so long from now, or never (`unlimited_lease`). False: it is over. A
  /// HeldPermit does not hear of it, and renews its own lease. Throws Error; after an effect that
  /// is unknown the lease may come late, over one that was given since.
  Task<bool> update_lease(PermitId permit, std::chrono::milliseconds lease);
};

}  // namespace sluice
