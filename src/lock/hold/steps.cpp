#include "lock/hold/steps.hpp"

#include <cstring>

#include "lock/hold/pending_releases.hpp"
#include "lock/hold/replication.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/per_store.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"
#include "store/reply_error.hpp"

namespace sluice::lock {
namespace {

void report_failed_release(const std::string& name, const std::exception& failure) noexcept {
  count(metrics().lock_release_failures);
  log(LogLevel::error,
      "lock " + quoted(name) + " was not released and ends with its lease: " + failure.what());
}

/// What is not answered is asked again when the server is there again; not of a closed Store, which
/// may be gone.
Task<void> give_up_and_report(Store& store, std::string name, std::string request, GiveUp give_up,
                              bool is_reported) {
  const auto again = [&store, name, request, give_up] { take_back(store, name, request, give_up); };
  try {
    co_await give_up();
    shared_of<PendingReleases>(store)->note_given_up(request, again);
  } catch (const Error& failure) {
    if (!is_reported) report_failed_release(name, failure);
    if (failure.errc() != Errc::closed) take_back_later(store, name, request, give_up, failure);
  } catch (const std::exception& failure) {
    report_failed_release(name, failure);
  }
}

/// Asks again for a release whose reply was lost. "Gone" is then the echo of the first request, if
/// the hold is certain.
Task<bool> end_again(std::shared_ptr<Hold> hold) {
  const Value reply = co_await hold->resource->ask_end(hold->who, {.repeatable = true});
  co_return reply.as_integer() == 1 ||
      hold->watchdog().clock().steady() < hold->certain_until.load();
}

ReleaseOutcome outcome_of(bool ended, bool lost) {
  if (ended) return {.kind = ReleaseOutcome::Kind::released};
  if (!lost) count(metrics().lock_lost);  // and this process had not noticed
  return {.kind = ReleaseOutcome::Kind::not_held};
}

/// Awaits the answer to Resource::ask_end.
Task<ReleaseOutcome> end(std::shared_ptr<Hold> hold, Task<Value> asked, bool lost) {
  bool ended = false;
  bool answered = false;
  try {
    const Value reply = co_await asked;
    ended = reply.as_integer() == 1;
    answered = true;
  } catch (const Error& failure) {
    if (failure.effect() != Effect::unknown || failure.errc() == Errc::closed)
      throw;  // a closed Store may be gone
  }
  if (!answered) {
    ended = co_await end_again(hold);
  }
  note_ended(*hold);  // not before: a late word of its grant would end it, and not this
  co_return outcome_of(ended, lost);
}

/// While the server is away it is asked again, unless entries remain.
Task<void> leave_and_report(std::shared_ptr<Hold> hold) {
  const Resource& resource = *hold->resource;
  try {
    co_await leave(hold, {.unhurried = true});
  } catch (const Error& failure) {
    report_failed_release(resource.key(), failure);
    if (is_outage(failure) && hold->watchdog().entries(*hold) == 0)
      take_back_later(resource.store(), resource.key(), resource.queued_as(hold->who),
                      resource.give_up(hold->who), failure);
  } catch (const std::exception& failure) {
    report_failed_release(resource.key(), failure);
  }
}

/// Since when a hold counts whose entries were noted by a request sent at `sent`. Replicas were not
/// waited for: where they have to know it, its time goes on from the last renewal.
SteadyTime confirmed_at(const Hold& hold, SteadyTime sent) {
  if (hold.resource->durability().replicas == 0) return sent;
  return hold.certain_until.load() + hold.terms.margin - hold.terms.lease;
}

/// Leaves while entries remain.
Task<ReleaseOutcome> leave_others_in(std::shared_ptr<Hold> hold, std::uint32_t others) {
  Watchdog& watchdog = hold->watchdog();
  const SteadyTime sent = watchdog.clock().steady();
  const Value reply = co_await hold->resource->ask_recount(*hold, others);
  if (reply.as_integer() == 1 && watchdog.confirm(hold, confirmed_at(*hold, sent)))
    co_return ReleaseOutcome{.kind = ReleaseOutcome::Kind::still_held, .still_held = others};
  watchdog.lose(hold, LostCause::taken);
  co_return ReleaseOutcome{.kind = ReleaseOutcome::Kind::not_held};
}

Task<Value> reply_of(Task<DurableReply> asked) {
  DurableReply durable = co_await asked;
  co_return std::move(durable.reply);
}

}  // namespace

Identity::Identity(std::string_view owner, std::string_view request, std::string_view holder) {
  std::size_t end = sizeof(Ends);
  Ends ends{static_cast<std::uint32_t>(end)};
  bytes_ =
      std::make_unique_for_overwrite<char[]>(end + owner.size() + request.size() + holder.size());
  std::size_t which = 0;
  for (const std::string_view part : {owner, request, holder}) {
    if (!part.empty()) std::memcpy(&bytes_[end], part.data(), part.size());
    ends[++which] = static_cast<std::uint32_t>(end += part.size());
  }
  std::memcpy(bytes_.get(), &ends, sizeof(ends));
}

std::string_view Identity::part(std::size_t which) const noexcept {
  if (!bytes_) return {};
  Ends ends;
  std::memcpy(&ends, bytes_.get(), sizeof(ends));
  return {&bytes_[ends[which]], ends[which + 1] - ends[which]};
}

Store& Resource::store() const noexcept { return watchdog_->store(); }

GiveUp script_call(Store& store, const Script& script, Words keys, Words args,
                   const Durability& durability) {
  return [&store, &script, keys = std::vector<std::string>{keys.begin(), keys.end()},
          args = std::vector<std::string>{args.begin(), args.end()}, durability] {
    const std::vector<std::string_view> key_views{keys.begin(), keys.end()};
    const std::vector<std::string_view> arg_views{args.begin(), args.end()};
    if (durability.replicas > 0)
      return reply_of(run_durably(store, script, key_views, arg_views, durability));
    return store.run(script, key_views, arg_views, {.repeatable = true});
  };
}

Task<Value> run_end(Store& store, const Script& script, Words keys, Words args,
                    const Durability& durability, CallOptions options) {
  if (durability.replicas == 0 || !options.unhurried) return store.run(script, keys, args, options);
  options.repeatable = true;
  return reply_of(run_durably(store, script, keys, args, durability, options));
}

void note_ended(const Hold& hold) {
  if (!hold.queued) return;
  const auto give_up_again = [of = std::weak_ptr{hold.resource}, who = hold.who] {
    if (const auto resource = of.lock()) take_back(*resource, who);
  };
  shared_of<PendingReleases>(hold.resource->store())
      ->note_ended(hold.resource->queued_as(hold.who), give_up_again);
}

bool may_have_left_something(const Error& failure) noexcept {
  return failure.effect() != Effect::none && failure.errc() != Errc::closed;
}

void take_back(const Resource& resource, const Identity& who) noexcept try {
  take_back(resource.store(), resource.key(), resource.queued_as(who), resource.give_up(who));
} catch (const std::exception&) {  // no memory for the words
  count(metrics().lock_release_failures);
}

void take_back(Store& store, std::string name, std::string request, GiveUp give_up,
               bool is_reported) noexcept {
  try {
    spawn(give_up_and_report(store, std::move(name), std::move(request), std::move(give_up),
                             is_reported));
  } catch (const std::exception&) {  // no memory for the coroutine
    count(metrics().lock_release_failures);
  }
}

void take_back_later(Store& store, const std::string& name, const std::string& request,
                     GiveUp give_up, const Error& failure) {
  const auto again = [&store, name, request, give_up = std::move(give_up)] {
    take_back(store, name, request, give_up, true);
  };
  shared_of<PendingReleases>(store)->keep(request, again, is_outage(failure));
}

std::shared_ptr<Hold> begin(std::shared_ptr<Resource> resource, Identity&& who, const Grant& grant,
                            const Terms& terms, SteadyTime renew_at) {
  Watchdog& watchdog = resource->watchdog();
  const SteadyTime now = watchdog.clock().steady();
  const SteadyTime certain_until = grant.since + grant.ttl - terms.margin;
  if (now >= certain_until) return nullptr;
  auto hold = std::make_shared<Hold>();
  hold->resource = std::move(resource);
  hold->who = std::move(who);
  hold->token = grant.token;
  hold->terms = terms;
  hold->began = now;
  hold->handed_on = grant.handed_on;
  hold->awaited = grant.awaited;
  hold->queued = grant.queued;
  hold->renew_at = renew_at;
  hold->certain_until.store(certain_until, std::memory_order_relaxed);
  watchdog.watch(hold, grant.since);
  count(metrics().lock_acquired);
  return hold;
}

Error granted_too_late(const Resource& resource, const Terms& terms) {
  return Error{Errc::timeout, "lock " + quoted(resource.key()) +
                                  " was granted, but the reply took as long as its lease of " +
                                  std::to_string(terms.lease.count()) +
                                  " ms; it was given back. A longer lease helps"};
}

Task<bool> enter_again(std::shared_ptr<Hold> hold) {
  Watchdog& watchdog = hold->watchdog();
  const SteadyTime sent = watchdog.clock().steady();
  const std::uint32_t entries = watchdog.enter(*hold);
  if (entries == 0) co_return false;
  bool in = false;
  try {
    const Value reply = co_await hold->resource->ask_recount(*hold, entries);
    in = reply.as_integer() == 1;
  } catch (const Error& failure) {
    if (failure.errc() != Errc::closed) leave_in_background(hold);
    throw;
  }
  if (!in) watchdog.lose(hold, LostCause::taken);
  if (in && watchdog.confirm(hold, confirmed_at(*hold, sent))) co_return true;
  watchdog.leave(*hold);
  co_return false;
}

Task<ReleaseOutcome> leave(std::shared_ptr<Hold> hold, CallOptions options) {
  using Kind = ReleaseOutcome::Kind;
  using Outcome = Task<ReleaseOutcome>;
  Watchdog& watchdog = hold->watchdog();
  const auto before = watchdog.leave(*hold);
  const bool lost = before.state == HoldState::lost;
  if (before.entries > 0 && !lost) return leave_others_in(std::move(hold), before.entries);
  // A hold that was lost here may be in force there, and is then ended a little sooner.
  if (lost && (before.entries > 0 || before.cause == LostCause::taken))
    return Outcome::ready({.kind = Kind::not_held});
  if (!lost) {
    metrics().lock_hold.observe(watchdog.clock().steady() - hold->began);
    if (hold->resource->pass_on(hold)) return Outcome::ready({.kind = Kind::released});
  }
  options.messages_first = hold->queued;  // it had to wait: others probably do now
  auto asked = hold->resource->ask_end(hold->who, options);
  if (!asked.is_ready()) return end(std::move(hold), std::move(asked), lost);
  const bool ended = asked.get().as_integer() == 1;
  note_ended(*hold);
  return Outcome::ready(outcome_of(ended, lost));
}

void leave_in_background(std::shared_ptr<Hold> hold) noexcept {
  try {
    spawn(leave_and_report(hold));
  } catch (const std::exception&) {  // no memory for the coroutine: it ends with its lease
    hold->watchdog().leave(*hold);
    count(metrics().lock_release_failures);
  }
}

}  // namespace sluice::lock
