#include "lock/simulation/ledger.hpp"

#include <algorithm>

namespace sluice::simulation {

using test::Event;
using Kind = test::Event::Kind;

Ledger::Ledger(const SimServer& server, Journal& journal, std::string name, LedgerTerms terms)
    : server_(server),
      journal_(journal),
      name_(std::move(name)),
      terms_(terms),
      checker_(terms.rules) {}

void Ledger::see(Kind kind, const std::string& who, std::uint64_t number) {
  checker_.see({.kind = kind,
                .who = who,
                .number = number,
                .at = server_.clock().steady().time_since_epoch()});
  if (const auto& verdict = checker_.verdict(); !verdict.ok())
    journal_.violate(fmt::format("{}: {}", name_, verdict.text()));
}

void Ledger::come(const Stay& stay) {
  if (stay.permits > 0) return see(Kind::acquire, stay.who, stay.permits);
  if (stay.mode == Mode::shared) return see(Kind::enter_shared, stay.who);
  const auto token = stay.held.token().value;
  const bool again = std::ranges::any_of(stays_, [&](const StayPtr& other) {
    return other->who == stay.who && other->counted && other->held.token().value == token;
  });
  see(Kind::enter, stay.who, again ? 0 : token);
}

void Ledger::go(const Stay& stay) {
  if (stay.permits > 0) return see(Kind::release, stay.who, stay.permits);
  see(stay.mode == Mode::shared ? Kind::leave_shared : Kind::leave, stay.who);
}

void Ledger::wait(const std::string& who, const SimProcess& process, const SimStore& store) {
  journal_.note("{} waits for {}", who, name_);
  waiters_.push_back({who, &process, &store, process.steady()});
  see(Kind::wait, who);
}

void Ledger::stop_waiting(const std::string& who) {
  std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.who == who; });
}

void Ledger::give_up(const std::string& who) {
  journal_.note("{} does not wait any more", who);
  stop_waiting(who);
  see(Kind::give_up, who);
}

bool Ledger::is_forgotten(const Stay& stay) const {
  // A token says when it was given, also where a process gives what it had before.
  const bool old_token = stay.mode == Mode::exclusive && stay.permits == 0 &&
                         static_cast<std::int64_t>(stay.held.token().value) <
                             server_.forgot_at().time_since_epoch().count();
  return old_token || stay.life < server_.first_life_of_data();
}

Ledger::StayPtr Ledger::enter(const std::string& who, const SimProcess& process,
                              const SimStore& store, Held& held, Mode mode, std::uint32_t permits) {
  journal_.note("{} is in {} with {}, valid for {} us", who, name_, held.token().value,
                held.valid_for().count() / 1000);
  auto told = std::make_shared<bool>(false);
  held.on_lost([told](LostCause) { *told = true; });
  const auto stay = std::make_shared<Stay>(
      Stay{who, process, store, held, mode, permits, store.life_heard(), told});
  look();
  stay->counted = held.valid() && !is_forgotten(*stay);
  stop_waiting(who);
  if (stay->counted) {
    come(*stay);
  } else {
    see(Kind::give_up, who);
  }
  stays_.push_back(stay);
  return stay;
}

void Ledger::leave(const StayPtr& stay) {
  look();
  journal_.note("{} leaves {}", stay->who, name_);
  if (stay->counted) go(*stay);
  stays_.remove(stay);
}

void Ledger::look() {
  for (const auto& stay : stays_) look_at(*stay);
}

void Ledger::look_at(Stay& stay) {
  const bool valid = stay.held.valid();
  const auto now = server_.clock().steady();
  if (!valid && !stay.ended) {
    stay.ended = now;
    journal_.note("{} has lost {}", stay.who, name_);
    if (std::exchange(stay.counted, false)) go(stay);
  }
  if (valid && stay.ended)
    journal_.violate(fmt::format("{}: the hold of {} is valid again", name_, stay.who));
  if (stay.ended && !*stay.told && !stay.process.stands_still() &&
      now > std::max(*stay.ended, stay.process.runs_since()) + 2 * terms_.jitter)
    journal_.violate(fmt::format("{}: {} is not told that its hold is lost", name_, stay.who));
  if (valid && is_forgotten(stay)) {
    if (std::exchange(stay.counted, false)) go(stay);
    look_at_forgotten(stay);
  }
}

void Ledger::look_at_forgotten(const Stay& stay) {
  const auto now = server_.clock().steady();
  const auto forgot_at = server_.forgot_at_steady();
  if (now > forgot_at + terms_.lease)
    journal_.violate(fmt::format("{}: {} holds beyond its lease what the server has forgotten",
                                 name_, stay.who));
  const auto able = std::max(stay.process.runs_since(), stay.store.connected_since());
  if (terms_.watched && able != SteadyTime::max() &&
      now - std::max(able, forgot_at) > terms_.to_find_out)
    journal_.violate(fmt::format("{}: {} does not find out that the server has forgotten its hold",
                                 name_, stay.who));
}

}  // namespace sluice::simulation
