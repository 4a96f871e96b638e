/// Renews the holds of this process on one Store, and tells their holders when they are over.
///
/// One timer serves all holds: it wakes at the earliest thing to do. Renewals fall on a common
/// beat, every quarter of a lease, so that all holds of that lease travel in one batch. Everything
/// that a hold may become is decided under one mutex:
///
///     watch  ->  (enter | confirm | leave)*  ->  last leave: released
///                                            ->  lose, or the certain time is over: lost
///
/// A hold without a confirmation for two thirds of its certain time is at risk, and its holder is
/// told. All holds are at risk when the connection comes back and another server answers than
/// before, or where a slot of a cluster has another master; they are renewed at once then, to learn
/// what that server knows: a hold that it prolongs has survived, another is lost.
///
/// The reply to a renewal may come after the end of its hold: confirm() does nothing then.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lock/hold/hold.hpp"
#include "lock/hold/replication.hpp"

namespace sluice::lock {

class PendingReleases;

class Watchdog : public std::enable_shared_from_this<Watchdog> {
 public:
  explicit Watchdog(Store& store);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  Store& store() noexcept { return store_; }
  Clock& clock() noexcept { return clock_; }

  /// `since`: when its lease began. The first renewal is at `hold->renew_at`, or the beat before.
  void watch(const std::shared_ptr<Hold>& hold, SteadyTime since);
  /// Waiters of this process wait behind the hold: it is renewed about once a second from now on,
  /// so that they notice soon when it has ended from outside.
  void note_waiter(Hold& hold);
  /// One entry more. The number of entries; 0: it is over.
  std::uint32_t enter(Hold& hold);
  /// The server has prolonged the hold by a request sent at `sent`. False: it is over here all the
  /// same.
  bool confirm(const std::shared_ptr<Hold>& hold, SteadyTime sent);
  /// One entry less; the last one ends the hold.
  struct Departure {
    std::uint32_t entries = 0;  ///< left
    HoldState state{};          ///< before
    LostCause cause{};          ///< if lost
  };
  Departure leave(Hold& hold);
  void lose(const std::shared_ptr<Hold>& hold, LostCause cause);

  std::stop_token lost(Hold& hold);
  void on_lost(Hold& hold, std::function<void(LostCause)> callback);
  void on_risk(Hold& hold, std::function<void(Risk)> callback);
  std::uint32_t entries(const Hold& hold) const;

 private:
  using Holds = std::vector<std::shared_ptr<Hold>>;
  /// What was promised to a hold that is lost, to be done without the mutex.
  struct Notice {
    std::shared_ptr<Hold> hold;
    std::unique_ptr<Hold::Listeners> listeners;
  };
  /// A hold at risk, and the callbacks to tell.
  struct Warning {
    std::shared_ptr<Hold> hold;
    Risk risk{};
    std::vector<std::function<void(Risk)>> callbacks;
  };
  /// What one wake-up found to do.
  struct Due {
    std::vector<Notice> notices;
    std::vector<Warning> warnings;
    Holds renewals;
  };

  // REQUIRE: mutex_ is held
  static Hold::Listeners& listeners_of(Hold& hold);
  SteadyTime beat_after(SteadyTime now, std::chrono::nanoseconds interval) const;
  Notice end(Hold& hold, LostCause cause);
  void forget(Hold& hold);
  Warning warning_of(Hold& hold, Risk risk);
  void forget_parent();
  SlotKeys slots_of(const Holds& holds) const;
  Clock::TimerId wake_by(SteadyTime when);
  void plan(Hold& hold, SteadyTime when);
  void find_place(std::shared_ptr<Hold> hold, std::size_t place);

  SteadyTime look_at(Hold& hold, SteadyTime now, Due& due);

  void wake();
  void reconnected();
  Task<void> find_out_who_answers(SlotKeys asked);
  Task<void> learn_who_answers(SlotKeys asked);
  void renew_all(const Holds& due, SteadyTime sent);
  Task<void> renew(Holds due, SteadyTime sent, Durability durability);
  void renew_soon();
  void take_answer(const Holds& part, const Value& answer, SteadyTime sent, bool synced);
  void postpone(const Holds& holds);
  void disarm(Clock::TimerId stale);
  void tell(Notice notice);
  void warn(const Warning& warning);

  Store& store_;
  Clock& clock_;
  const SteadyTime origin_;                                  // of the beat
  const std::shared_ptr<PendingReleases> pending_releases_;  // as long as a primitive is used
  mutable std::mutex mutex_;
  Holds holds_;  // a heap: the first is looked at first
  Clock::TimerId timer_ = 0;
  SteadyTime wake_at_ = SteadyTime::max();
  unsigned forks_ = fork_count();
  std::map<std::uint16_t, std::string> servers_;  // the identity of that of each slot, once asked
  Listener reconnection_;
  std::once_flag listening_;
};

}  // namespace sluice::lock
