/// Whether a server takes requests. One for each server of a pool, shared by all workers; pure but
/// for a mutex: time is passed in.
///
///     well --(limit failures in a row)--> ejected
///     ejected --(retry time passes, then a health check succeeds)--> well
///     ejected --(retry time passes, and the check fails)--> ejected
///
/// A failure counts once for an incident: what had begun before the last failure that counted tells
/// nothing new, so ten connections that a restart breaks are one failure. (twemproxy counts each
/// connection.)
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "proxy/config/config.hpp"
#include "proxy/protocol/protocol.hpp"
#include "sluice/clock.hpp"

namespace sluice::proxy {

/// What may go wrong with a request or a connection, and whether it counts against the server:
/// failures.def. Nothing else counts, so nothing else ejects.
bool counts_against_server(Failure failure) noexcept;
/// For the log.
std::string_view text_of(Failure failure) noexcept;

struct HealthPolicy {
  bool gives_up = false;  ///< false: a server is never ejected
  std::size_t failure_limit = 2;
  std::chrono::milliseconds retry{30000};
  bool checked = true;       ///< false: as twemproxy, back after the retry time without a question
  bool each_counts = false;  ///< as twemproxy: each failure counts

  bool operator==(const HealthPolicy&) const = default;
};
HealthPolicy health_policy(const PoolSettings& pool);

/// Changes of any server of a pool, so that workers see by one number that they must make their
/// ring again.
using HealthVersion = std::atomic<std::uint64_t>;

class Health {
 public:
  Health(HealthPolicy policy, HealthVersion& version) : policy_(policy), version_(version) {}

  bool well() const noexcept { return well_.load(std::memory_order_acquire); }

  /// A good reply. A load, when there was no failure.
  void succeeded() noexcept {
    if (failures_.load(std::memory_order_relaxed) != 0) reset_failures();
  }
  /// Something that began at `since` failed. True: the server has just been ejected.
  bool failed(SteadyTime since, SteadyTime now);

  /// When an ejected server is to be tried again; max() when it is well.
  SteadyTime retry_at() const;
  /// Claims the health check that is due: one caller gets true, and calls checked() afterwards.
  bool claim_check(SteadyTime now);
  // True of each: the server has come back just now.
  bool checked(bool good, SteadyTime now);
  /// Without checks: takes it back when its time has come.
  bool come_back(SteadyTime now);
  bool set_policy(HealthPolicy policy);
  HealthPolicy policy() const;
  std::size_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

 private:
  void reset_failures() noexcept;
  void turn_well();

  mutable std::mutex mutex_;
  HealthPolicy policy_;
  HealthVersion& version_;
  std::atomic<bool> well_{true};
  std::atomic<std::size_t> failures_{0};
  SteadyTime last_failure_ = SteadyTime::min();
  SteadyTime retry_at_ = SteadyTime::max();
};

/// Which changes of a server the log tells: the first few at once, then one every ten seconds, so
/// that a server that flaps fills no disk. Threads: any; pure but for a mutex.
class ToldChanges {
 public:
  static constexpr int at_once = 6;
  static constexpr std::chrono::seconds interval{10};

  /// A change. Empty: it is not told. Else so many before it were not.
  std::optional<std::size_t> note(SteadyTime now);
  /// So many changes were not told, the last among them, and one may be told now: as it is now.
  std::optional<std::size_t> overdue(SteadyTime now);
  /// A line about something else that could come often: one a second is enough.
  bool is_due(SteadyTime now);

 private:
  bool take(SteadyTime now);

  std::mutex mutex_;
  int left_ = at_once;
  SteadyTime since_{};  // when left_ last grew
  std::size_t untold_ = 0;
  std::optional<SteadyTime> told_;  // something else
};

}  // namespace sluice::proxy
