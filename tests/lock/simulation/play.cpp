#include "lock/simulation/play.hpp"

#include "lock/simulation/visit.hpp"

namespace sluice::simulation {

using namespace std::chrono_literals;
using EventKind = test::Event::Kind;

Play::Play(const Primitive& primitive, const Profile& profile, const Machines& machines,
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
      doors_.push_back(primitive.open(machine->store, name, profile));
  }
}

Task<void> Play::visit(Actor& actor) {
  const auto name = actor.dice.below(ledgers_.size());
  const Owner owner;
  const bool owned = primitive_.owners && actor.dice.chance(50);
  const bool reads = primitive_.readers && actor.dice.chance(60);
  const Visit visit{.actor = actor,
                    .ledger = *ledgers_[name],
                    .door = door(name, actor.machine.number),
                    .owner = owned ? &owner : nullptr,
                    .way = reads ? Way::shared : Way::exclusive,
                    .permits = static_cast<std::uint32_t>(1 + actor.dice.below(primitive_.most))};
  auto preparing = visit.door.prepare();
  co_await preparing;
  auto entering = enter(visit);
  std::optional<Held> held = co_await entering;
  if (!held) co_return;
  {
    const Stay stay{visit.ledger, actor, *held, visit.way,
                    primitive_.permits > 0 ? visit.permits : 0};
    auto staying = be_inside(visit);
    co_await staying;
  }
  if (actor.dice.chance(40)) co_return;  // the destructor releases
  auto releasing = held->release();
  const ReleaseOutcome outcome = co_await releasing;
  journal_.note("{}: {}", actor.name, to_string(outcome.kind));
}

Task<std::optional<Held>> Play::enter(const Visit& visit) {
  Actor& actor = visit.actor;
  const Patience patience{actor.dice};
  Wait wait{visit.ledger, actor, patience.wait > 0ms};
  std::optional<StopAfter> stop;
  if (patience.stops_after) stop.emplace(actor.machine.process, *patience.stops_after);
  const std::stop_token token = stop ? stop->token() : std::stop_token{};
  auto acquiring = visit.door.enter(visit.owner, visit.way, visit.permits, patience.wait, token);
  std::optional<Held> held = co_await acquiring;
  if (held) wait.is_over();
  co_return held;
}

/// An owner may enter once more, or read what he writes.
Task<void> Play::be_inside(const Visit& visit) {
  Actor& actor = visit.actor;
  SimProcess& process = actor.machine.process;
  const auto time = time_inside(actor.dice, profile_);
  auto staying = sleep_until(process, process.steady() + time / 2);
  co_await staying;
  std::optional<Held> again;
  std::optional<Stay> stay;
  if (visit.owner && actor.dice.chance(40)) {
    const Way way = primitive_.readers && actor.dice.chance(50) ? Way::shared : visit.way;
    auto entering = visit.door.enter(visit.owner, way, visit.permits, 0ms, {});
    again = co_await entering;
    if (again) stay.emplace(visit.ledger, actor, *again, way, 0U);
  }
  auto rest = sleep_until(process, process.steady() + time / 2);
  co_await rest;
}

}  // namespace sluice::simulation
