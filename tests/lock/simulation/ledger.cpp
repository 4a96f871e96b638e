#include "lock/simulation/ledger.hpp"

#include <algorithm>

namespace sluice::simulation {

using test::Event;
using Kind = test::Event::Kind;

namespace {

constexpr std::chrono::seconds longest_way{1};  // of a grant

}  // namespace

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
  const bool goes_on = terms_.common_owners && stay.token == last_token_;
  const bool again =
      goes_on || std::ranges::any_of(stays_, [&](const StayPtr& other) {
        return other->who == stay.who && other->counted && other->token == stay.token;
      });
  if (stay.mode == Mode::exclusive) last_token_ = stay.token;
  see(Kind::enter, stay.who, again ? 0 : stay.token);
}

void Ledger::go(const Stay& stay) {
  if (stay.permits > 0) return see(Kind::release, stay.who, stay.permits);
  see(stay.mode == Mode::shared ? Kind::leave_shared : Kind::leave, stay.who);
}

void Ledger::wait(const std::string& who, const SimProcess& process, const SimStore& store) {
  journal_.note("{} waits for {}", who, name_);
  waiters_.push_back({who, &process, &store, server_.clock().steady()});
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
  if (terms_.durable) return false;
  // A token says when it was given, also where a process gives what it had before.
  const bool old_token =
      stay.mode == Mode::exclusive && stay.permits == 0 &&
      static_cast<std::int64_t>(stay.token) < server_.forgot_at().time_since_epoch().count();
  return old_token || stay.life < server_.first_life_of_data();
}

/// `on_its_way`: how long a grant may have been. A reader's token does not tell which came first.
bool Ledger::is_ended_outside(const Stay& stay, std::chrono::milliseconds on_its_way) const {
  if (ended_outside_at_ == SteadyTime::min()) return false;
  if (stay.mode == Mode::exclusive && stay.permits == 0) return stay.token <= ended_outside_;
  return stay.since < ended_outside_at_ + on_its_way;
}

bool Ledger::counts(const Stay& stay) const {
  return !stay.excused && !is_forgotten(stay) && !is_ended_outside(stay, longest_way);
}

void Ledger::look_at_token(const Stay& stay) {
  if (stay.mode == Mode::shared || stay.permits > 0) return;
  const auto [had, is_new] = tokens_.emplace(stay.token, stay.who);
  if (!is_new && had->second != stay.who)
    journal_.violate(fmt::format("{}: token {} is given to {} and was {}'s", name_, stay.token,
                                 stay.who, had->second));
}

Ledger::StayPtr Ledger::enter(const std::string& who, const SimProcess& process, SimStore& store,
                              SimHold& held, Mode mode, std::uint32_t permits) {
  const std::uint64_t token = held.token(name_).value;
  journal_.note("{} is in {} with {}, valid for {} us", who, name_, token,
                held.valid_for().count() / 1000);
  auto told = std::make_shared<bool>(false);
  held.on_lost([told](LostCause) { *told = true; });
  if (terms_.throws && held.valid())
    held.on_lost([](LostCause) { throw 1; });  // nothing that is a std::exception
  if (terms_.blocks.count() > 0 && held.valid())
    held.on_lost([&store, time = terms_.blocks](LostCause) { store.block_callbacks(time); });
  const auto stay =
      std::make_shared<Stay>(Stay{who, process, store, held, token, mode, permits,
                                  server_.clock().steady(), store.life_heard(), told});
  for (const auto& other : stays_) {
    other->excused |= may_be_forced_;
    stay->excused |= other->excused && other->who == who && other->token == token;
  }
  if (may_be_forced_ && !tokens_.empty() && mode == Mode::exclusive)
    stay->excused |= token < tokens_.rbegin()->first;  // it was on its way when it was ended
  look();
  look_at_token(*stay);
  stay->counted = held.valid() && counts(*stay);
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
  if (std::ranges::find(stays_, stay) == stays_.end()) return;  // its process was dead
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
    look_at_loss(stay);
    if (std::exchange(stay.counted, false)) go(stay);
  }
  if (valid && stay.ended)
    journal_.violate(fmt::format("{}: the hold of {} is valid again", name_, stay.who));
  const bool may_wait = terms_.blocks.count() > 0;  // behind a callback that blocks
  if (stay.ended && !*stay.told && !may_wait && !stay.process.stands_still() &&
      now > std::max(*stay.ended, stay.process.runs_since()) + 2 * terms_.jitter)
    journal_.violate(fmt::format("{}: {} is not told that its hold is lost", name_, stay.who));
  if (valid && !counts(stay)) {
    if (std::exchange(stay.counted, false)) go(stay);
    if (is_forgotten(stay) && server_.forgot_all()) look_at_forgotten(stay);
  }
}

void Ledger::look_at_loss(const Stay& stay) {
  if (!terms_.lasting || !terms_.watched || !counts(stay)) return;
  const auto able = std::max(stay.process.runs_since(), stay.store.connected_since());
  if (able == SteadyTime::max() || server_.clock().steady() - able < terms_.lease) return;
  journal_.violate(fmt::format("{}: {} has lost its hold without a cause", name_, stay.who));
}

void Ledger::bury(const SimProcess& process) {
  const auto until = server_.clock().steady() + terms_.lease;
  for (const auto& stay : stays_) {
    if (&stay->process != &process) continue;
    if (std::exchange(stay->counted, false)) go(*stay);
    ghosts_.push_back({.until = until, .permits = stay->permits});
  }
  std::erase_if(stays_, [&](const StayPtr& stay) { return &stay->process == &process; });
  const auto waiters = waiters_;
  for (const auto& waiter : waiters)
    if (waiter.process == &process) give_up(waiter.who);
}

void Ledger::end_outside(std::uint64_t last_token) {
  ended_outside_ = std::max(ended_outside_, last_token);
  ended_outside_at_ = server_.clock().steady();
  look();
}

std::vector<const SimHold*> Ledger::ended_outside() const {
  std::vector<const SimHold*> holds;
  for (const auto& stay : stays_)
    if (is_ended_outside(*stay, longest_way)) holds.push_back(&stay->held);
  return holds;
}

void Ledger::excuse(const SimHold* hold) {
  for (const auto& stay : stays_)
    if (&stay->held == hold) stay->excused = true;
}

bool Ledger::is_in_the_way(const Stay& stay) const {
  const auto now = server_.clock().steady();
  if (is_ended_outside(stay, {})) return false;
  // A renewal that was on its way when the hold was lost here keeps it there, until its holder
  // leaves. A holder that has lost one of its names has the others until it leaves.
  if (stay.ended && !stay.excused) return now < *stay.ended + terms_.lease;
  return !stay.process.stands_still() || now < stay.process.stopped_at() + terms_.lease;
}

bool Ledger::is_idle(std::uint32_t most) const {
  const auto now = server_.clock().steady();
  std::size_t holds = 0;
  std::uint32_t permits = 0;
  for (const auto& stay : stays_)
    if (is_in_the_way(*stay)) ++holds, permits += stay->permits;
  for (const auto& ghost : ghosts_)
    if (now < ghost.until) ++holds, permits += ghost.permits;
  return terms_.rules.permits ? permits + most <= *terms_.rules.permits : holds == 0;
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
