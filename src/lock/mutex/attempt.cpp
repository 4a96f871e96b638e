#include "lock/mutex/attempt.hpp"

#include "lock/hold/watchdog.hpp"
#include "lock/mutex/wire.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::lock {
namespace {

void report_failed_release(const Names& names, const std::exception& failure) noexcept {
  count(metrics().lock_release_failures);
  log(LogLevel::error,
      "lock " + quoted(names.key) + " was not released and ends with its lease: " + failure.what());
}

/// Ends what an acquire of unknown outcome may have left behind.
Task<void> take_back(std::shared_ptr<Watchdog> watchdog, std::shared_ptr<const Names> names,
                     std::string request) {
  try {
    auto asked = ask_release(watchdog->store(), *names, request, true);
    co_await asked;
  } catch (const std::exception& failure) {
    report_failed_release(*names, failure);
  }
}

/// Asks again for a release whose reply was lost. "Gone" is then the echo of the first request, if
/// the hold is certain.
Task<bool> end_again(std::shared_ptr<Hold> hold) {
  auto asked = ask_release(hold->watchdog->store(), *hold->names, hold->request, true);
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1 ||
      hold->watchdog->clock().steady() < hold->certain_until.load();
}

Task<void> leave_and_report(std::shared_ptr<Hold> hold) {
  const auto names = hold->names;
  try {
    auto leaving = leave(std::move(hold));
    co_await leaving;
  } catch (const std::exception& failure) {
    report_failed_release(*names, failure);
  }
}

}  // namespace

Task<Attempt> attempt(Entrant& who, const std::shared_ptr<Watchdog>& watchdog,
                      const std::shared_ptr<const Names>& names, const Terms& terms) {
  const SteadyTime sent = watchdog->clock().steady();
  Answer answer;
  try {
    auto asked = ask_acquire(watchdog->store(), *names, who.owner_id, who.request, terms.lease);
    const Value reply = co_await asked;
    answer = answer_to_acquire(reply);
  } catch (const Error& failure) {
    if (failure.effect() != Effect::none && failure.errc() != Errc::closed)
      spawn(take_back(watchdog, names, who.request));
    throw;
  }
  if (!answer.granted) co_return Attempt{.hold = nullptr, .left = answer.left};

  const SteadyTime certain_until = terms.certain_until(sent);
  if (watchdog->clock().steady() >= certain_until) {
    spawn(take_back(watchdog, names, who.request));
    throw Error{Errc::timeout, "lock " + quoted(names->key) +
                                   " was granted, but the reply took as long as its lease of " +
                                   std::to_string(terms.lease.count()) +
                                   " ms; it was given back. A longer lease helps"};
  }
  auto hold = std::make_shared<Hold>();
  hold->watchdog = watchdog;
  hold->names = names;
  hold->owner = std::move(who.owner_id);
  hold->request = std::move(who.request);
  hold->token = *answer.granted;
  hold->terms = terms;
  hold->certain_until.store(certain_until, std::memory_order_relaxed);
  watchdog->watch(hold);
  if (who.owner) who.owner->add(hold);
  count(metrics().lock_acquired);
  co_return Attempt{.hold = std::move(hold), .left = {}};
}

Task<bool> enter_again(std::shared_ptr<Hold> hold) {
  Watchdog& watchdog = *hold->watchdog;
  const SteadyTime sent = watchdog.clock().steady();
  const std::uint32_t entries = watchdog.enter(*hold);
  if (entries == 0) co_return false;
  bool in = false;
  try {
    auto asked = ask_recount(watchdog.store(), *hold, entries);
    const Value reply = co_await asked;
    in = reply.as_integer() == 1;
  } catch (const Error& failure) {
    if (failure.errc() != Errc::closed) leave_in_background(hold);
    throw;
  }
  if (!in) watchdog.lose(hold, LostCause::taken);
  if (in && watchdog.confirm(hold, sent)) co_return true;
  watchdog.leave(*hold);
  co_return false;
}

/// Leaves while entries remain.
Task<ReleaseOutcome> leave_others_in(std::shared_ptr<Hold> hold, std::uint32_t others) {
  Watchdog& watchdog = *hold->watchdog;
  const SteadyTime sent = watchdog.clock().steady();
  auto asked = ask_recount(watchdog.store(), *hold, others);
  const Value reply = co_await asked;
  if (reply.as_integer() == 1 && watchdog.confirm(hold, sent))
    co_return ReleaseOutcome{.kind = ReleaseOutcome::Kind::still_held, .still_held = others};
  watchdog.lose(hold, LostCause::taken);
  co_return ReleaseOutcome{.kind = ReleaseOutcome::Kind::not_held};
}

Task<ReleaseOutcome> leave(std::shared_ptr<Hold> hold) {
  using Kind = ReleaseOutcome::Kind;
  Watchdog& watchdog = *hold->watchdog;
  const auto before = watchdog.leave(*hold);
  const bool lost = before.state == HoldState::lost;
  if (before.entries > 0 && !lost) {
    auto leaving = leave_others_in(hold, before.entries);
    co_return co_await leaving;
  }
  // A hold that was lost here may be in force there, and is then ended a little sooner.
  if (lost && (before.entries > 0 || before.cause == LostCause::taken))
    co_return ReleaseOutcome{.kind = Kind::not_held};

  bool ended = false;
  bool answered = false;
  try {
    auto asked = ask_release(watchdog.store(), *hold->names, hold->request, false);
    const Value reply = co_await asked;
    ended = reply.as_integer() == 1;
    answered = true;
  } catch (const Error& failure) {
    if (failure.effect() != Effect::unknown || failure.errc() == Errc::closed)
      throw;  // a closed Store may be gone
  }
  if (!answered) {
    auto ending = end_again(hold);
    ended = co_await ending;
  }
  if (ended) co_return ReleaseOutcome{.kind = Kind::released};
  if (!lost) count(metrics().lock_lost);  // and nobody had noticed
  co_return ReleaseOutcome{.kind = Kind::not_held};
}

void leave_in_background(std::shared_ptr<Hold> hold) noexcept {
  try {
    spawn(leave_and_report(std::move(hold)));
  } catch (const std::exception& failure) {  // no memory for the coroutine
    count(metrics().lock_release_failures);
  }
}

}  // namespace sluice::lock
