/// What every visit has: a wait that ends, and a stay that ends, however it is left.
#pragma once

#include <stop_token>

#include "lock/simulation/play.hpp"

namespace sluice::simulation {

/// From wanting to be in to being in or having given up.
class Wait {
 public:
  /// `patient`: else it is one look, and no wait.
  Wait(Ledger& ledger, Actor& actor, bool patient)
      : ledger_(ledger), actor_(actor), over_(!patient) {
    if (patient) ledger_.wait(actor.name, actor.machine.process, actor.machine.store);
  }
  ~Wait() {
    if (!over_) ledger_.give_up(actor_.name);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  void is_over() noexcept { over_ = true; }

 private:
  Ledger& ledger_;
  Actor& actor_;
  bool over_;
};

/// From being in to wanting to be out.
class Stay {
 public:
  /// `permits`: 0 where there are none.
  Stay(Ledger& ledger, Actor& actor, Held& held, Way way, std::uint32_t permits)
      : ledger_(ledger),
        stay_(ledger.enter(actor.name, actor.machine.process, actor.machine.store, held, way,
                           permits)) {}
  ~Stay() { ledger_.leave(stay_); }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

 private:
  Ledger& ledger_;
  const Ledger::StayPtr stay_;
};

/// A stop_token that stops by itself after `time`; of use while this lives.
class StopAfter {
 public:
  StopAfter(SimProcess& process, std::chrono::nanoseconds time)
      : process_(process), timer_(process.after(time, [this] { source_.request_stop(); })) {}
  ~StopAfter() { process_.cancel(timer_); }
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  SimProcess& process_;
  std::stop_source source_;
  const Clock::TimerId timer_;
};

/// How long somebody is willing to wait.
struct Patience {
  explicit Patience(Dice& dice);

  std::chrono::milliseconds wait;
  std::optional<std::chrono::nanoseconds> stops_after;
};

/// How long somebody stays in: mostly as the seed says, now and then beyond a short lease.
std::chrono::nanoseconds time_inside(Dice& dice, const Profile& profile);

}  // namespace sluice::simulation
