#include "lock/fair/queue.hpp"

#include "lock/hold/steps.hpp"
#include "lock/mutex/hash_hold.hpp"
#include "lock/per_store.hpp"
#include "sluice/metrics.hpp"

namespace sluice::lock {

FairQueue::FairQueue(Store& store, const std::string& name, FairTerms terms)
    : Resource(store, name),
      wire_(store, name, terms),
      watchdog_(shared_of<Watchdog>(store)),
      inbox_(shared_of<Inbox>(store)) {}

const Script& FairQueue::renewal() const noexcept { return hash_hold_renewal(); }
void FairQueue::add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const {
  add_hash_hold(renewal, key(), hold, entries);
}
Task<Value> FairQueue::ask_end(const Identity& who, CallOptions options) {
  return wire_.ask_end(who, options);
}
GiveUp FairQueue::give_up(const Identity& who) const {
  return [wire = wire_, who] { return wire.ask_give_up(who); };
}
Task<Value> FairQueue::ask_recount(const Hold& hold, std::uint32_t entries) {
  return ask_hash_recount(store(), key(), hold, entries);
}

/// Null: it came too late.
std::shared_ptr<Hold> FairQueue::begin_hold(const Identity& who, const Grant& grant,
                                            SteadyTime renew_at) {
  auto hold = begin(watchdog_, shared_from_this(), who, grant, wire_.terms().terms, renew_at);
  if (!hold) count(metrics().lock_late);
  const std::lock_guard lock{mutex_};
  latest_ = hold;
  return hold;
}

Task<std::shared_ptr<Hold>> FairQueue::try_enter(Identity who) {
  const SteadyTime sent = watchdog_->clock().steady();
  AcquireReply answer;
  try {
    auto asking = wire_.ask_acquire(who, {});
    answer = co_await asking;
  } catch (const Error& failure) {
    if (may_have_left_something(failure)) take_back(*this, who);
    throw;
  }
  if (!answer.granted) co_return nullptr;
  const Terms& terms = wire_.terms().terms;
  const Grant grant{.token = *answer.granted, .since = sent, .ttl = terms.lease};
  if (auto hold = begin_hold(who, grant)) co_return hold;
  take_back(*this, who);
  throw granted_too_late(*this, terms);
}

/// A process that has not waited yet looks once without its inbox, which costs a round trip.
Task<std::shared_ptr<Hold>> FairQueue::enter(Identity who, SteadyTime until, std::stop_token stop) {
  if (!inbox_->is_open()) {
    auto trying = try_enter(who);
    if (auto hold = co_await trying) co_return hold;
    auto opening = inbox_->open();
    co_await opening;
  }
  auto standing = stand(std::move(who), until, std::move(stop));
  co_return co_await standing;
}

/// In the queue; and out of it again, unless it came to a hold.
Task<std::shared_ptr<Hold>> FairQueue::stand(Identity who, SteadyTime until, std::stop_token stop) {
  std::shared_ptr<Hold> hold;
  try {
    auto waiting = wait(who, until, std::move(stop));
    hold = co_await waiting;
  } catch (const Error& failure) {
    if (failure.errc() != Errc::closed) take_back(*this, who);
    throw;
  }
  if (!hold) take_back(*this, who);
  co_return hold;
}

Task<std::shared_ptr<Hold>> FairQueue::wait(Identity who, SteadyTime until, std::stop_token stop) {
  Inbox::Subscription box{inbox_, who.request};  // before the question, so that no grant is missed
  const FairTerms& terms = wire_.terms();
  QueuedWait line{box, terms.terms.lease,
                  [this, &who] { return wire_.ask_acquire(who, inbox_->channel()); }};
  const std::stop_callback on_stop{stop,
                                   [&box] { box.post({.kind = InboxMessage::Kind::recheck}); }};
  const auto wanted = [&stop] { return !stop.stop_requested(); };
  for (;;) {
    auto standing = line.stand(until, wanted);
    const std::optional<Grant> grant = co_await standing;
    if (!grant) co_return nullptr;
    if (!line.was_handed_over()) {
      if (auto hold = begin_hold(who, *grant)) co_return hold;
      throw granted_too_late(*this, terms.terms);
    }
    if (terms.asks_after_hand_over()) continue;
    if (auto hold = begin_hold(who, *grant, grant->since + grant->ttl / 3)) {
      count(metrics().lock_handed_over);
      co_return hold;
    }
    // This process stood still, and another has the lock, or will have: wait again.
  }
}

Task<bool> FairQueue::force_release() {
  std::shared_ptr<Hold> latest;
  {
    const std::lock_guard lock{mutex_};
    latest = latest_.lock();  // before: afterwards it may be the next one
  }
  auto asked = wire_.ask_force_release();
  const Value reply = co_await asked;
  const bool ended = reply.as_integer() == 1;
  if (ended && latest) watchdog_->lose(latest, LostCause::taken);
  co_return ended;
}

}  // namespace sluice::lock
