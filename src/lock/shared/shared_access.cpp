#include "lock/shared/shared_access.hpp"

#include "lock/hold/steps.hpp"
#include "lock/hold/watchdog.hpp"
#include "sluice/metrics.hpp"

namespace sluice::lock {

SharedAccess::SharedAccess(Store& store, Mode mode, std::shared_ptr<const SharedWire> wire,
                           std::shared_ptr<Watchdog> watchdog, std::shared_ptr<Inbox> inbox)
    : Resource(store, wire->names().key),
      mode_(mode),
      wire_(std::move(wire)),
      watchdog_(std::move(watchdog)),
      inbox_(std::move(inbox)) {}

const Script& SharedAccess::renewal() const noexcept { return SharedWire::renewal(mode_); }
void SharedAccess::add_to(Renewal& renewal, const Hold& hold, std::uint32_t) const {
  wire_->add_to(renewal, mode_, hold);
}
Task<Value> SharedAccess::ask_end(const Identity& who, CallOptions options) {
  return wire_->ask_end(mode_, who, options);
}
GiveUp SharedAccess::give_up(const Identity& who) const {
  return [wire = wire_, mode = mode_, who, inbox = inbox_->channel()] {
    return wire->ask_give_up(mode, who, inbox);
  };
}
Task<Value> SharedAccess::ask_recount(const Hold& hold, std::uint32_t entries) {
  return wire_->ask_recount(hold, entries);
}

Task<AcquireReply> SharedAccess::ask(const Identity& who, std::string inbox) {
  try {
    auto asking = wire_->ask_acquire(mode_, who, inbox);
    co_return co_await asking;
  } catch (const Error& failure) {
    if (may_have_left_something(failure)) take_back(*this, who);
    throw;
  }
}

/// Throws Error (timeout) when the answer came too late.
std::shared_ptr<Hold> SharedAccess::begin_asked(const Identity& who, const AcquireReply& answer,
                                                SteadyTime sent) {
  const Terms& terms = wire_->terms().terms;
  const Grant grant{.token = *answer.granted, .since = sent, .ttl = terms.lease};
  if (auto hold = begin(watchdog_, shared_from_this(), who, grant, terms)) return hold;
  count(metrics().lock_late);
  take_back(*this, who);
  throw granted_too_late(*this, terms);
}

Task<std::shared_ptr<Hold>> SharedAccess::try_enter(Identity who) {
  const auto self = shared_from_this();
  const SteadyTime sent = watchdog_->clock().steady();
  auto asking = ask(who, {});
  const AcquireReply answer = co_await asking;
  if (!answer.granted) co_return nullptr;
  co_return begin_asked(who, answer, sent);
}

Task<std::shared_ptr<Hold>> SharedAccess::enter(Identity who, SteadyTime until,
                                                std::stop_token stop) {
  const auto self = shared_from_this();
  Inbox::Subscription box{inbox_,
                          who.request};  // before the question: a grant may overtake the answer
  const bool queues = inbox_->is_open();
  const SteadyTime sent = watchdog_->clock().steady();
  auto asking = ask(who, queues ? inbox_->channel() : std::string{});
  const AcquireReply answer = co_await asking;
  if (answer.granted) co_return begin_asked(who, answer, sent);
  QueuedWait line{box, wire_->terms().terms.lease,
                  [this, &who] { return ask(who, inbox_->channel()); }};
  if (queues) {
    line.heard(answer, sent);
  } else {
    auto opening = inbox_->open();
    co_await opening;
  }
  const std::stop_callback on_stop{stop,
                                   [&box] { box.post({.kind = InboxMessage::Kind::recheck}); }};
  auto standing = stand(line, who, until, stop);
  co_return co_await standing;
}

Task<std::shared_ptr<Hold>> SharedAccess::stand(QueuedWait& line, const Identity& who,
                                                SteadyTime until, std::stop_token stop) {
  const auto wanted = [&stop] { return !stop.stop_requested(); };
  std::exception_ptr failure;
  try {
    while (wanted() && watchdog_->clock().steady() < until) {
      auto standing = line.stand(until, wanted);
      const std::optional<Grant> grant = co_await standing;
      if (!grant) break;
      const bool handed_over = line.was_handed_over();
      // The replicas have to know it first: by another question, which is answered by a grant.
      if (handed_over && wire_->terms().durability.replicas > 0) continue;
      if (auto hold = begin_granted(who, *grant, handed_over)) co_return hold;
    }
  } catch (...) {
    failure = std::current_exception();
  }
  take_back(*this, who);
  if (failure) std::rethrow_exception(failure);
  co_return nullptr;
}

/// Null: it stood still, and others may be in: it asks again.
std::shared_ptr<Hold> SharedAccess::begin_granted(const Identity& who, const Grant& grant,
                                                  bool handed_over) {
  const SteadyTime claim = handed_over ? grant.since + grant.ttl / 3 : SteadyTime::max();
  auto hold = begin(watchdog_, shared_from_this(), who, grant, wire_->terms().terms, claim);
  if (!hold) count(metrics().lock_late);
  if (hold && handed_over) count(metrics().lock_handed_over);
  return hold;
}

}  // namespace sluice::lock
