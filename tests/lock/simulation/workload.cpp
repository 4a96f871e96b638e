#include "lock/simulation/workload.hpp"

#include <algorithm>
#include <stop_token>

namespace sluice::simulation {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

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
  Stay(Ledger& ledger, Actor& actor, Held& held, Mode mode, std::uint32_t permits)
      : ledger_(ledger),
        stay_(ledger.enter(actor.name, actor.machine.process, actor.machine.store, held, mode,
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
  explicit Patience(Dice& dice) {
    const nanoseconds waits[] = {0ms, 5ms, 200ms, 3s};
    wait = std::chrono::floor<milliseconds>(dice.upto(dice.one_of(waits)));
    if (dice.chance(45)) wait = milliseconds::max();
    if (wait > 0ms && wait < milliseconds::max() && dice.chance(30)) stops_after = dice.upto(wait);
  }

  std::chrono::milliseconds wait;
  std::optional<std::chrono::nanoseconds> stops_after;
};

/// How long somebody stays in: mostly as the seed says, now and then beyond a short lease.
nanoseconds time_inside(Dice& dice, const Profile& profile) {
  const nanoseconds beyond_lease = std::min<nanoseconds>(2 * profile.lease, 3s);
  return dice.upto(dice.chance(10) ? beyond_lease : profile.longest_hold);
}

}  // namespace

Workload::Workload(const Primitive& primitive, const Profile& profile, const Machines& machines,
                   const SimServer& server, Journal& journal)
    : primitive_(primitive), profile_(profile), journal_(journal), machines_(machines.size()) {
  LedgerTerms terms{.lease = profile.lease,
                    .watched = profile.watched,
                    .jitter = profile.jitter,
                    // INFO, then the renewal, there and back, and then a timer
                    .to_find_out = 4 * 5 * profile.line.longest_delay + 4 * profile.jitter + 1ms};
  if (primitive.permits > 0) terms.rules.permits = primitive.permits;
  for (std::size_t i = 0; i < profile.names; ++i) {
    const auto name = fmt::format("lock{}", i);
    ledgers_.push_back(std::make_unique<Ledger>(server, journal, name, terms));
    for (const auto& machine : machines)
      locks_.push_back(primitive.open(machine->store, name, profile));
  }
}

Task<void> Workload::acquire_and_release(Actor& actor) {
  const auto name = actor.dice.below(ledgers_.size());
  const Owner owner;
  const bool owned = primitive_.owners && actor.dice.chance(50);
  const bool reads = primitive_.readers && actor.dice.chance(60);
  const Acquisition acquisition{
      .actor = actor,
      .ledger = *ledgers_[name],
      .lock = lock(name, actor.machine.number),
      .owner = owned ? &owner : nullptr,
      .mode = reads ? Mode::shared : Mode::exclusive,
      .permits = static_cast<std::uint32_t>(1 + actor.dice.below(primitive_.most))};
  auto preparing = acquisition.lock.prepare();
  co_await preparing;
  auto entering = enter(acquisition);
  std::optional<Held> held = co_await entering;
  if (!held) co_return;
  {
    const Stay stay{acquisition.ledger, actor, *held, acquisition.mode,
                    primitive_.permits > 0 ? acquisition.permits : 0};
    auto staying = be_inside(acquisition);
    co_await staying;
  }
  if (actor.dice.chance(40)) co_return;  // the destructor releases
  auto releasing = held->release();
  const ReleaseOutcome outcome = co_await releasing;
  journal_.note("{}: {}", actor.name, to_string(outcome.kind));
}

Task<std::optional<Held>> Workload::enter(const Acquisition& acquisition) {
  Actor& actor = acquisition.actor;
  const Patience patience{actor.dice};
  Wait wait{acquisition.ledger, actor, patience.wait > 0ms};
  std::optional<StopAfter> stop;
  if (patience.stops_after) stop.emplace(actor.machine.process, *patience.stops_after);
  const std::stop_token token = stop ? stop->token() : std::stop_token{};
  auto acquiring = acquisition.lock.enter(acquisition.owner, acquisition.mode, acquisition.permits,
                                          patience.wait, token);
  std::optional<Held> held = co_await acquiring;
  if (held) wait.is_over();
  co_return held;
}

/// An owner may enter once more, or read what he writes.
Task<void> Workload::be_inside(const Acquisition& acquisition) {
  Actor& actor = acquisition.actor;
  SimProcess& process = actor.machine.process;
  const auto time = time_inside(actor.dice, profile_);
  auto staying = sleep_until(process, process.steady() + time / 2);
  co_await staying;
  std::optional<Held> again;
  std::optional<Stay> stay;
  if (acquisition.owner && actor.dice.chance(40)) {
    const Mode mode = primitive_.readers && actor.dice.chance(50) ? Mode::shared : acquisition.mode;
    auto entering = acquisition.lock.enter(acquisition.owner, mode, acquisition.permits, 0ms, {});
    again = co_await entering;
    if (again) stay.emplace(acquisition.ledger, actor, *again, mode, 0U);
  }
  auto rest = sleep_until(process, process.steady() + time / 2);
  co_await rest;
}

}  // namespace sluice::simulation
