#include "lock/wait/lock_resource.hpp"

#include "lock/hold/replication.hpp"
#include "lock/hold/steps.hpp"
#include "lock/per_store.hpp"
#include "lock/wait/queued_wait.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"

namespace sluice::lock {

LockCommon::LockCommon(Store& store, const Terms& its_terms, const Durability& its_durability)
    : terms(its_terms),
      durability(its_durability),
      watchdog(shared_of<Watchdog>(store)),
      inboxes(shared_of<Inboxes>(store)) {}

Task<AcquireReply> LockResource::request_hold(const Identity& who, const Script& script, Words keys,
                                              Words args) {
  if (durability().replicas == 0) {
    auto asked = store().run(script, keys, args, {.repeatable = true});
    if (!asked.is_ready()) return read(who, std::move(asked));
    return Task<AcquireReply>::ready(read_acquire_reply(asked.get(), who.owner()));
  }
  return read_durably(who, run_durably(store(), script, keys, args, durability()));
}

Task<AcquireReply> LockResource::read(const Identity& who, Task<Value> asked) {
  const Value reply = co_await asked;
  co_return read_acquire_reply(reply, who.owner());
}

Task<AcquireReply> LockResource::read_durably(const Identity& who, Task<DurableReply> asked) {
  const DurableReply durable = co_await asked;
  const AcquireReply reply = read_acquire_reply(durable.reply, who.owner());
  if (!reply.granted || durable.copies.are_enough(durability())) co_return reply;
  try {
    co_await ask_end(who, {.repeatable = true});
  } catch (const Error& failure) {
    // No outage of the question: its copy would be granted, and that end may still come after it.
    if (failure.errc() == Errc::closed) throw;
    take_back(*this, who);
  }
  throw unsynced(key(), durable.copies, durability());
}

std::shared_ptr<Hold> LockResource::begin_granted(Identity&& who, const Grant& grant,
                                                  SteadyTime renew_at) {
  auto hold = begin(shared_from_this(), std::move(who), grant, lease_terms(), renew_at);
  if (hold) granted(hold);
  return hold;
}

std::shared_ptr<Hold> LockResource::begin_requested(Identity&& who, FencingToken token,
                                                    SteadyTime since) {
  const Grant grant{.token = token, .since = since, .ttl = lease_terms().lease};
  if (auto hold = begin_granted(std::move(who), grant, SteadyTime::max())) return hold;
  count(metrics().lock_late);
  take_back(*this, who);
  throw granted_too_late(*this, lease_terms());
}

Task<std::shared_ptr<Hold>> LockResource::try_enter(Identity who) {
  const auto self = shared_from_this();
  const SteadyTime sent = watchdog().clock().steady();
  AcquireReply reply;
  try {
    reply = co_await ask_acquire(who, {}, 0);
  } catch (const Error& failure) {
    if (may_have_left_something(failure)) take_back(*this, who);
    throw;
  }
  if (!reply.granted) co_return nullptr;
  co_return begin_requested(std::move(who), *reply.granted, sent);
}

Task<std::shared_ptr<Hold>> LockResource::enter(Identity who, SteadyTime until,
                                                std::stop_token stop) {
  return enter_patiently(Patience{watchdog().clock(), until}, stop, std::move(who),
                         [self = shared_from_this(), until, stop](const Identity& asks) {
                           return self->enter_once(asks, until, stop);
                         });
}

/// A process that has not waited yet asks once without its inbox, since opening it costs a round
/// trip.
Task<std::shared_ptr<Hold>> LockResource::enter_once(Identity who, SteadyTime until,
                                                     std::stop_token stop) {
  const std::shared_ptr<Inbox> heard_in = inbox();
  if (!heard_in->is_open()) {
    if (auto hold = co_await try_enter(who)) co_return hold;
    if (const bool heard = co_await heard_in->open(until); !heard) co_return nullptr;
  }
  std::shared_ptr<Hold> hold;
  try {
    hold = co_await wait_in_queue(heard_in, who, until, std::move(stop));
  } catch (const Error& failure) {
    if (failure.errc() != Errc::closed) take_back(*this, who);
    throw;
  }
  if (!hold) take_back(*this, who);
  co_return hold;
}

Task<std::shared_ptr<Hold>> LockResource::wait_in_queue(std::shared_ptr<Inbox> inbox, Identity& who,
                                                        SteadyTime until, std::stop_token stop) {
  // before the request, so that no grant is missed
  Inbox::Subscription subscription{inbox, std::string{who.request()}};
  QueuedWait queued{subscription, lease_terms(), asks_after_hand_over(),
                    [this, &who, &inbox](std::uint64_t came) {
                      return ask_acquire(who, inbox->channel(), came);
                    }};
  const std::stop_callback on_stop{
      stop, [&subscription] { subscription.post({.kind = InboxMessage::Kind::recheck}); }};
  const auto wanted = [&stop] { return !stop.stop_requested(); };
  for (;;) {
    const std::optional<Grant> grant = co_await queued.stand(until, wanted);
    if (!grant) co_return nullptr;
    const bool handed_over = queued.was_handed_over();
    const auto renew_at = handed_over ? grant->confirm_at() : SteadyTime::max();
    if (auto hold = begin_granted(std::move(who), *grant, renew_at)) {
      if (handed_over) count(metrics().lock_handed_over);
      co_return hold;
    }
    count(metrics().lock_late);  // this process stood still, and another has the lock: wait again
  }
}

Task<bool> LockResource::force_release() {
  const auto self = shared_from_this();
  check_process();
  const auto latest = latest_hold();  // before the request: afterwards it may be the next one
  const bool ended = (co_await ask_force_release()).as_integer() == 1;
  if (ended && latest) watchdog().lose(latest, LostCause::taken);
  co_return ended;
}

}  // namespace sluice::lock
