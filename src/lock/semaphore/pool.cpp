#include "lock/semaphore/pool.hpp"

#include <charconv>

#include "lock/hold/steps.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/per_store.hpp"
#include "lock/semaphore/members.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"

namespace sluice::lock {
namespace {

/// How many permits somebody says are free. A gap in the messages says nothing: any number, then.
std::int64_t free_by(const Message& message) {
  std::int64_t free = std::numeric_limits<std::int64_t>::max();
  if (message.kind == Message::Kind::published)
    std::from_chars(message.payload.data(), message.payload.data() + message.payload.size(), free);
  return free;
}

}  // namespace

Pool::Pool(Store& store, PoolNames names, Terms terms)
    : Resource(store, names.free),
      wire_(store, std::move(names)),
      terms_(terms),
      watchdog_(shared_of<Watchdog>(store)),
      inbox_(shared_of<Inbox>(store)) {}

Pool::~Pool() = default;

void Pool::add_to(Renewal& renewal, const Hold& hold, std::uint32_t) const {
  wire_.add_to(renewal, hold);
}
Task<Value> Pool::ask_end(const Identity& who, CallOptions options) {
  return wire_.ask_end(who, options);
}
GiveUp Pool::give_up(const Identity& who) const {
  return [wire = wire_, who, inbox = inbox_->channel()] { return wire.ask_give_up(who, inbox); };
}
Task<Value> Pool::ask_recount(const Hold&, std::uint32_t) {
  return Task<Value>::ready(Value::integer(0));  // nobody enters a hold of permits again
}

std::shared_ptr<Hold> Pool::hold(Identity who, const Grant& grant, bool handed_over) {
  const SteadyTime confirm = handed_over ? grant.since + grant.ttl / 3 : SteadyTime::max();
  auto hold = begin(watchdog_, shared_from_this(), std::move(who), grant, terms_, confirm);
  if (hold && handed_over) count(metrics().lock_handed_over);
  return hold;
}

Task<bool> Pool::enter(Visit visit, Admit admit) {
  const auto self = shared_from_this();
  const bool waits = visit.until > store().clock().steady() && !visit.stop.stop_requested();
  if (!waits || !is_listening()) {
    auto looking = look_once(visit, admit);
    const std::optional<bool> in = co_await looking;
    if (in || !waits) co_return in.value_or(false);
  }
  auto waiting = wait(std::move(visit), std::move(admit));
  co_return co_await waiting;
}

/// Without a place in the queue. Nothing: refused.
Task<std::optional<bool>> Pool::look_once(const Visit& visit, const Admit& admit) {
  const SteadyTime sent = store().clock().steady();
  const std::string no_inbox;
  PoolAnswer said;
  try {
    auto asking = wire_.ask_acquire(visit.who, no_inbox);
    said = co_await asking;
  } catch (const Error& failure) {
    if (may_have_left_something(failure)) take_back(*this, visit.who);
    throw;
  }
  if (!said.answer.granted) co_return std::nullopt;
  const Grant grant{.token = {}, .since = sent, .ttl = visit.lease};
  if (admit(grant, false)) co_return true;
  count(metrics().lock_late);
  take_back(*this, visit.who);
  throw granted_too_late(*this, terms_);
}

Task<bool> Pool::wait(Visit visit, Admit admit) {
  auto opening = inbox_->open();
  co_await opening;
  auto listening = listen();
  co_await listening;
  Inbox::Subscription box{inbox_, visit.who.request};
  Places place;
  place.push_back({.box = box, .permits = count_of(visit.who.holder)});
  const auto here = place.begin();
  {
    const std::lock_guard lock{mutex_};
    places_.splice(places_.end(), place);
  }
  bool in = false;
  std::exception_ptr failure;
  try {
    auto standing = stand(box, *here, visit, admit);
    in = co_await standing;
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock{mutex_};
    places_.erase(here);
  }
  if (!in) take_back(*this, visit.who);
  if (failure) std::rethrow_exception(failure);
  co_return in;
}

/// In the server's queue, until it is in or does not want to any more.
Task<bool> Pool::stand(Inbox::Subscription& box, Place& place, const Visit& visit,
                       const Admit& admit) {
  QueuedWait line{box, visit.lease, [&] { return ask_in_line(visit.who, place); }};
  const std::stop_callback on_stop{visit.stop,
                                   [&box] { box.post({.kind = InboxMessage::Kind::recheck}); }};
  const auto wanted = [&visit] { return !visit.stop.stop_requested(); };
  for (;;) {
    auto standing = line.stand(visit.until, wanted);
    const std::optional<Grant> grant = co_await standing;
    if (!grant) co_return false;
    if (admit(*grant, line.was_handed_over())) co_return true;
    count(metrics().lock_late);  // it stood still: back into the queue
  }
}

Task<AcquireReply> Pool::ask_in_line(Identity who, Place& place) {
  std::uint64_t news = 0;
  {
    const std::lock_guard lock{mutex_};
    place.leads = false;
    news = news_;
  }
  auto asking = wire_.ask_acquire(who, inbox_->channel());
  PoolAnswer said = co_await asking;
  const std::lock_guard lock{mutex_};
  place.leads = said.leads;
  if (said.leads && news_ != news)  // it may be younger than the answer
    place.box.post({.kind = InboxMessage::Kind::look});
  co_return std::move(said.answer);
}

// --- Java programs, that do not know the queue ---

bool Pool::is_listening() const {
  const std::lock_guard lock{mutex_};
  return static_cast<bool>(foreigners_) && inbox_->is_open();
}

/// Several may be at it at once: the Store has one subscription for all.
Task<void> Pool::listen() {
  if (is_listening()) co_return;
  auto listening =
      store().listen(wire_.names().channel, [weak = weak_from_this()](const Message& message) {
        if (const auto pool = weak.lock()) pool->heard(message);
      });
  Listener listener = co_await listening;  // goes after the lock: its handler may wait for that
  const std::lock_guard lock{mutex_};
  if (!foreigners_) std::swap(foreigners_, listener);
}

void Pool::heard(const Message& message) {
  const std::int64_t free = free_by(message);
  Trampoline trampoline;  // before the lock: what is called under it runs after it
  const std::lock_guard lock{mutex_};
  ++news_;
  for (const Place& place : places_)
    if (place.leads && free >= place.permits) place.box.post({.kind = InboxMessage::Kind::look});
}

}  // namespace sluice::lock
