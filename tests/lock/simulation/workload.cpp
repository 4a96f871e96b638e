#include "lock/simulation/workload.hpp"

#include <algorithm>
#include <stop_token>

#include "sluice/when_all.hpp"

namespace sluice::simulation {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// From wanting to be in to being in or having given up.
class Workload::Wait {
 public:
  /// `patient`: else it is one look, and no wait.
  Wait(Workload& workload, const Acquisition& acquisition, bool patient)
      : workload_(workload), acquisition_(acquisition), over_(!patient) {
    if (!patient) return;
    const Actor& actor = acquisition.actor;
    for (auto* ledger : acquisition.ledgers)
      ledger->wait(actor.name, actor.machine.process, actor.machine.store);
    here_ = workload.waiting_.insert(
        workload.waiting_.end(),
        Waiting{&actor, acquisition.ledgers,
                std::max(workload.clock_.steady(), workload.server_.hangs_until()),
                workload.entries_, acquisition.mode});
  }
  ~Wait() {
    if (over_) return;
    for (auto* ledger : acquisition_.ledgers) ledger->give_up(acquisition_.actor.name);
    workload_.waiting_.erase(here_);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  void is_over() {
    if (std::exchange(over_, true)) return;
    workload_.look_at_order(*here_);
    workload_.waiting_.erase(here_);
  }

 private:
  Workload& workload_;
  const Acquisition& acquisition_;
  std::list<Waiting>::iterator here_;
  bool over_;
};

/// From being in to wanting to be out.
class Workload::Stay {
 public:
  Stay(Workload& workload, const Acquisition& acquisition, SimHold& held, Mode mode) {
    const Actor& actor = acquisition.actor;
    const auto permits = workload.primitive_.permits ? acquisition.permits : 0;
    for (auto* ledger : acquisition.ledgers)
      stays_.emplace_back(ledger, ledger->enter(acquisition.who, actor.machine.process,
                                                actor.machine.store, held, mode, permits));
    // One of its names may have been ended while the grant was on its way.
    for (const auto* ledger : acquisition.ledgers)
      for (const auto* hold : ledger->ended_outside())
        for (auto* other : acquisition.ledgers) other->excuse(hold);
  }
  ~Stay() {
    for (const auto& [ledger, stay] : stays_) ledger->leave(stay);
  }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

 private:
  std::vector<std::pair<Ledger*, Ledger::StayPtr>> stays_;
};

namespace {

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

/// Two entries of one owner.
class PairHold final : public SimHold {
 public:
  PairHold(SimHoldPtr first, SimHoldPtr second)
      : first_(std::move(first)), second_(std::move(second)) {}
  bool valid() const override { return first_->valid() && second_->valid(); }
  nanoseconds valid_for() const override {
    return std::min(first_->valid_for(), second_->valid_for());
  }
  FencingToken token(const std::string& name) const override { return first_->token(name); }
  void on_lost(std::function<void(LostCause)> callback) override {
    (first_->valid() ? second_ : first_)->on_lost(std::move(callback));
  }
  Task<ReleaseOutcome> release() override {
    auto one = first_->release();
    co_await one;
    auto other = second_->release();
    co_return co_await other;
  }

 private:
  SimHoldPtr first_;
  SimHoldPtr second_;
};

/// How long somebody is willing to wait.
struct Patience {
  Patience(Dice& dice, bool endless) {
    wait = milliseconds::max();
    if (endless) return;
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
  if (profile.even) return profile.longest_hold;
  const nanoseconds beyond_lease = std::min<nanoseconds>(2 * profile.lease, 3s);
  return dice.upto(dice.chance(10) ? beyond_lease : profile.longest_hold);
}

}  // namespace

ClockTerms Machine::clock_of(const Profile& profile, const Mutation& mutation, Dice& dice) {
  ClockTerms terms{.stands_suspended = mutation.stands_suspended};
  constexpr double ways[] = {-1, -0.5, 0, 1};
  if (profile.drift > 0) terms.drift = profile.drift * dice.one_of(ways);
  return terms;
}

Workload::Workload(const Primitive& primitive, const Profile& profile, const Machines& machines,
                   const SimServer& server, Journal& journal, const Mutation& mutation)
    : primitive_(primitive),
      profile_(profile),
      journal_(journal),
      mutation_(mutation),
      machines_(machines.size()),
      server_(server),
      clock_(server.clock()) {
  LedgerTerms terms{.lease = profile.lease,
                    .watched = profile.watched,
                    .jitter = profile.jitter,
                    // INFO, then the renewal, there and back, and then a timer
                    .to_find_out = 4 * 5 * profile.line.longest_delay + 4 * profile.jitter + 1ms,
                    .lasting = profile.lasting,
                    .durable = profile.durability.replicas > 0,
                    .throws = profile.throws,
                    .blocks = profile.blocks,
                    .common_owners = profile.common_owners};
  if (primitive.permits && !profile.operators) terms.rules.permits = profile.permits;
  std::vector<std::string> names;
  std::vector<Ledger*> ledgers;
  Profile own = profile;
  for (std::size_t i = 0; i < profile.names; ++i) {
    if (i > 0 && profile.other_lease > 0ms) {
      terms.lease = own.lease = profile.other_lease;
      terms.lasting = false;  // the line is slower
    }
    names.push_back(fmt::format("lock{}", i));
    ledgers_.push_back(std::make_unique<Ledger>(server, journal, names.back(), terms));
    ledgers.push_back(ledgers_.back().get());
    for (const auto& machine : machines)
      doors_.push_back(
          {primitive.open(machine->stores, names.back(), own), {ledgers_.back().get()}});
  }
  if (!primitive.open_all) return;
  for (const auto& machine : machines) {
    doors_.push_back({primitive.open_all(machine->stores, names, profile), ledgers});
    std::ranges::reverse(names);
  }
}

Task<void> Workload::acquire_and_release(Actor& actor) {
  const auto name = actor.dice.below(doors_.size() / machines_);
  const Owner own;
  const bool common = profile_.common_owners && actor.dice.chance(70);
  const Owner& owner = common ? actor.machine.owner : own;
  const bool owned = primitive_.owners && (common || actor.dice.chance(50));
  const bool reads = primitive_.readers && !profile_.even && actor.dice.chance(60);
  actor.waits = false;
  const Door& door = doors_[name * machines_ + actor.machine.number];
  const Acquisition acquisition{
      .actor = actor,
      .who = common ? actor.machine.process.name() + ".owner" : actor.name,
      .ledgers = door.ledgers,
      .lock = *door.lock,
      .owner = owned ? &owner : nullptr,
      .mode = reads ? Mode::shared : Mode::exclusive,
      .permits = static_cast<std::uint32_t>(
          1 + actor.dice.below(std::min(primitive_.most, profile_.permits)))};
  auto preparing = acquisition.lock.prepare();
  co_await preparing;
  auto entering = enter(acquisition);
  SimHoldPtr held = co_await entering;
  if (!held) co_return;
  ++entries_;
  {
    const Stay stay{*this, acquisition, *held, acquisition.mode};
    auto staying = be_inside(acquisition);
    co_await staying;
  }
  if (actor.dice.chance(40)) co_return;  // the destructor releases
  auto releasing = held->release();
  const ReleaseOutcome outcome = co_await releasing;
  journal_.note("{}: {}", actor.name, to_string(outcome.kind));
}

Task<bool> Workload::operate(std::size_t name, Machine& machine, Dice& dice) {
  SimLock& door = lock(name, machine.number);
  const auto lot = dice.below(3);
  if (lot == 0) {
    auto looking = door.look();
    co_await looking;
  } else if (lot == 1) {
    auto changing = door.change();
    co_await changing;
  } else {
    auto forcing = door.force();
    co_return co_await forcing;
  }
  co_return false;
}

Task<SimHoldPtr> Workload::enter(const Acquisition& acquisition) {
  Actor& actor = acquisition.actor;
  const Patience patience{actor.dice, profile_.patient || profile_.even};
  const bool alone = acquisition.who == actor.name;
  Wait wait{*this, acquisition, patience.wait > 0ms && primitive_.is_held && alone};
  std::optional<StopAfter> stop;
  if (patience.stops_after) stop.emplace(actor.machine.process, *patience.stops_after);
  const std::stop_token token = stop ? stop->token() : std::stop_token{};
  actor.waits = patience.wait == milliseconds::max();
  const bool twice = profile_.common_owners && acquisition.owner && actor.dice.chance(40);
  auto acquiring = twice ? enter_twice(acquisition, patience.wait, token)
                         : acquisition.lock.enter(acquisition.owner, acquisition.mode,
                                                  acquisition.permits, patience.wait, token);
  SimHoldPtr held = co_await acquiring;
  actor.waits = false;
  if (held) wait.is_over();
  co_return held;
}

/// Nobody gets in before somebody who has been waiting for it in the same way. Where several are
/// given theirs at once, they hear of it in any order.
void Workload::look_at_order(const Waiting& enters) {
  constexpr auto on_the_way = 200ms;
  if (!primitive_.in_order || !profile_.prompt) return;
  const bool alone = enters.mode == Mode::exclusive && !primitive_.permits;
  for (auto& other : waiting_)
    if (other.ledgers == enters.ledgers && other.mode == enters.mode &&
        other.since + on_the_way < enters.since && other.came + on_the_way < enters.came)
      other.overtaken = std::min(other.overtaken, clock_.steady() - (alone ? 1s : 0s));
}

void Workload::look_for_overtaken() const {
  constexpr auto on_the_way = 200ms;  // a process confirms a few grants at a time
  for (const auto& one : waiting_)
    if (one.overtaken < clock_.steady() - on_the_way)
      journal_.violate(fmt::format("somebody gets in before {}, who came first", one.actor->name));
}

/// By two acquires of one owner at the same time. Null: neither, or one of them is out again.
Task<SimHoldPtr> Workload::enter_twice(const Acquisition& acquisition, milliseconds wait,
                                       std::stop_token stop) {
  const Owner another;
  const Owner* const second = mutation_.splits_owners ? &another : acquisition.owner;
  std::vector<Task<SimHoldPtr>> entering;
  for (const Owner* const owner : {acquisition.owner, second})
    entering.push_back(
        acquisition.lock.enter(owner, acquisition.mode, acquisition.permits, wait, stop));
  auto both = when_all(std::move(entering));
  std::vector<SimHoldPtr> holds = co_await both;
  if (!holds.at(0) || !holds.at(1)) co_return nullptr;
  co_return std::make_unique<PairHold>(std::move(holds.at(0)), std::move(holds.at(1)));
}

/// An owner may enter once more, or read what he writes.
Task<void> Workload::be_inside(const Acquisition& acquisition) {
  Actor& actor = acquisition.actor;
  SimProcess& process = actor.machine.process;
  const auto time = time_inside(actor.dice, profile_);
  auto staying = sleep_until(process, process.steady() + time / 2);
  co_await staying;
  SimHoldPtr again;
  std::optional<Stay> stay;
  if (acquisition.owner && actor.dice.chance(40)) {
    const Mode mode = primitive_.readers && actor.dice.chance(50) ? Mode::shared : acquisition.mode;
    auto entering = acquisition.lock.enter(acquisition.owner, mode, acquisition.permits, 0ms, {});
    again = co_await entering;
    if (again) stay.emplace(*this, acquisition, *again, mode);
  }
  auto rest = sleep_until(process, process.steady() + time / 2);
  co_await rest;
}

}  // namespace sluice::simulation
