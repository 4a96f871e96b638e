/// What every lock hands out: a hold, whose it is, and how it ends.
#pragma once

#include <compare>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "sluice/durability.hpp"
#include "sluice/task.hpp"

namespace sluice {

namespace lock {
struct Internals;
struct Hold;
struct OwnerState;
}  // namespace lock

/// Rises with every new hold of a lock. Hand it to whatever the lock protects, and let that refuse
/// a smaller one than it has seen: the only defence against a holder that was stopped, lost its
/// hold, and writes on.
struct FencingToken {
  std::uint64_t value = 0;
  friend auto operator<=>(const FencingToken&, const FencingToken&) = default;
};

/// An owner as it stands in Redis: `<uuid>:<number>`.
struct OwnerId {
  std::string text;
  friend bool operator==(const OwnerId&, const OwnerId&) = default;
};

/// A party that may hold locks, and enter again what it holds. Not a thread: it may be moved
/// between threads and coroutines, and used by several at once.
///
/// A caller that acquires without an Owner gets a new one each time.
class Owner {
 public:
  /// A new identity, which no other Owner had before.
  Owner();
  Owner(Owner&&) noexcept = default;
  Owner& operator=(Owner&&) noexcept = default;

  const OwnerId& id() const noexcept;

 private:
  friend struct lock::Internals;
  std::shared_ptr<lock::OwnerState> state_;
};

/// Why a hold ended before it was released.
enum class LostCause {
  expired,      ///< The lease ran out here: it is not renewed, or this process stood still.
  unreachable,  ///< Renewals failed until the lease ran out here.
  taken,  ///< The server knows the hold no more: expired there, forced open, or its data lost.
};

std::string_view to_string(LostCause cause) noexcept;

/// Why a hold that is still certain may soon be over.
enum class Risk {
  unanswered,  ///< No renewal has succeeded for two thirds of the lease.
  uncertain,   ///< Another server answers than the one that granted the hold: a failover, a
               ///< restart, or a slot of a cluster that has moved. It may know nothing of the hold,
               ///< and may have let another holder in. It is asked at once: the hold is lost, or
               ///< valid() goes on.
};

std::string_view to_string(Risk risk) noexcept;

/// What a release found.
struct ReleaseOutcome {
  enum class Kind {
    released,    ///< The lock is free.
    still_held,  ///< The owner had entered more than once, and is still in.
    not_held,    ///< The hold was lost before.
  };
  Kind kind = Kind::released;
  std::uint32_t still_held = 0;  ///< entries left

  friend bool operator==(const ReleaseOutcome&, const ReleaseOutcome&) = default;
};

std::string_view to_string(ReleaseOutcome::Kind kind) noexcept;

/// One entry of an owner into a Mutex. Its end is the release.
///
/// Threads: one at a time, but for `valid`, `valid_for`, `token`, `owner` and `lost`, which any may
///   call.
class [[nodiscard("the hold ends with this object: keep it for as long as you work")]] Held {
 public:
  using must_be_kept = void;  // of Task::get()

  /// Holds nothing.
  Held() noexcept = default;
  Held(Held && other) noexcept = default;
  Held& operator=(Held&& other) noexcept;
  /// Releases: sends the request at once, in order with what this thread sends later, and does not
  /// wait for the reply. Never throws; a failure is logged and counted in
  /// `sluice_lock_release_failures_total`; while the server is away it is asked again, and the hold
  /// ends with its lease at the latest.
  ~Held();

  /// Whether the hold is certain at this moment. Asks the local steady clock only: no I/O, some 30
  /// ns. Once false, false for ever. Time that the machine was suspended counts.
  bool valid() const noexcept;
  /// How long it stays certain if no renewal succeeds; 0 when it is not.
  std::chrono::nanoseconds valid_for() const noexcept;
  explicit operator bool() const noexcept { return valid(); }

  FencingToken token() const noexcept;
  OwnerId owner() const;
  /// How often the owner is in.
  std::uint32_t entries() const;

  /// Leaves, and waits for the server to say so. Afterwards this holds nothing, whatever the
  /// outcome; a second call is answered `not_held` without I/O. A request whose reply was lost is
  /// repeated, and cannot touch a newer hold.
  /// Throws Error (effect none or unknown; the hold ends with its lease at the latest).
  Task<ReleaseOutcome> release();

  /// Stops when the hold is lost; never after the release. It is a callback, as those below.
  std::stop_token lost() const;
  /// Calls `callback` once if the hold is lost, soon if it is lost already, as a callback of the
  /// Store (OpenOptions::executor): it may block, and what it throws, of any type, is logged. It
  /// may be under way while the hold is released.
  void on_lost(std::function<void(LostCause)> callback);
  /// Calls `callback` each time the hold comes to be at risk, before it is lost; as on_lost. An
  /// unwatched hold is at risk of `uncertain` alone.
  void on_risk(std::function<void(Risk)> callback);

 private:
  friend struct lock::Internals;
  explicit Held(std::shared_ptr<lock::Hold> hold) noexcept : hold_(std::move(hold)) {}
  void abandon() noexcept;
  bool is_ours() const noexcept;

  std::shared_ptr<lock::Hold> hold_;
};

}  // namespace sluice
