#include "lock/semaphore/permit_queue.hpp"

#include <limits>

#include "base/integer.hpp"
#include "lock/hold/owner.hpp"
#include "lock/hold/steps.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/per_store.hpp"
#include "lock/text.hpp"
#include "lock/wait/queued_wait.hpp"
#include "sluice/metrics.hpp"

namespace sluice::lock {
namespace {

/// How many permits a message says are free. A gap in the messages says nothing: any number, then.
std::int64_t free_by(const Message& message) {
  constexpr auto any = std::numeric_limits<std::int64_t>::max();
  return message.kind == Message::Kind::published ? leading_number(message.payload, any) : any;
}

}  // namespace

PermitQueue::PermitQueue(Store& store, PermitNames names, Terms terms)
    : PermitWire(shared_of<Watchdog>(store), std::move(names)),
      terms_(terms),
      inboxes_(shared_of<Inboxes>(store)),
      inbox_(inboxes_->of(PermitWire::names().free)) {
  check_one_slot(store, "semaphore", PermitWire::names().free);
}

PermitQueue::~PermitQueue() = default;

GiveUp PermitQueue::give_up(const Identity& who) const {
  return give_up_wait(who, inbox_->channel());
}

std::shared_ptr<Hold> PermitQueue::hold(Identity who, const Grant& grant, bool handed_over) {
  const SteadyTime confirm = handed_over ? grant.confirm_at() : SteadyTime::max();
  auto hold = begin(shared_from_this(), std::move(who), grant, terms_, confirm);
  if (hold && handed_over) count(metrics().lock_handed_over);
  return hold;
}

Task<bool> PermitQueue::enter(PermitRequest request, Accept accept) {
  const auto self = shared_from_this();
  check_process();
  const SteadyTime now = store().clock().steady();
  const SteadyTime until = Clock::add(now, request.wait);
  const bool waits = until > now && !request.stop.stop_requested();
  if (!waits) {
    const std::optional<bool> in = co_await try_once(request, accept);
    co_return in.value_or(false);
  }
  const std::stop_token stop = request.stop;
  bool asked = false;
  auto entering = wait_out(Patience{store().clock(), until}, stop, [&] {
    if (std::exchange(asked, true))  // the last one was given up
      request.who = request.who.with_request(new_request_like(request.who.request()));
    return enter_once(request, until, accept);
  });
  co_return co_await entering;
}

Task<bool> PermitQueue::enter_once(PermitRequest& request, SteadyTime until, const Accept& accept) {
  std::optional<bool> in;
  if (!is_listening()) in = co_await try_once(request, accept);
  if (!in) in = co_await wait(request, until, accept);
  co_return *in;
}

/// Without a place in the queue. Nothing: refused.
Task<std::optional<bool>> PermitQueue::try_once(const PermitRequest& request,
                                                const Accept& accept) {
  const SteadyTime sent = store().clock().steady();
  const std::string no_inbox;
  PermitReply said;
  try {
    said = co_await ask_acquire(request.who, no_inbox, 0);
  } catch (const Error& failure) {
    if (may_have_left_something(failure)) take_back(*this, request.who);
    throw;
  }
  if (!said.reply.granted) co_return std::nullopt;
  const Grant grant{.token = {}, .since = sent, .ttl = request.terms.lease};
  if (accept(request.who, grant, false)) co_return true;
  count(metrics().lock_late);
  take_back(*this, request.who);
  throw granted_too_late(*this, terms_);
}

Task<bool> PermitQueue::wait(PermitRequest request, SteadyTime until, Accept accept) {
  if (const bool heard = co_await inbox_->open(until); !heard) co_return false;
  if (const bool heard = co_await listen(until); !heard) co_return false;
  Inbox::Subscription inbox{inbox_, std::string{request.who.request()}};
  Waiters waiter;
  waiter.push_back({.inbox = inbox, .permits = count_of(request.who.holder())});
  const auto here = waiter.begin();
  {
    const std::lock_guard lock{mutex_};
    waiters_.splice(waiters_.end(), waiter);
  }
  bool in = false;
  std::exception_ptr failure;
  try {
    in = co_await stand(*here, request, until, accept);
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock{mutex_};
    waiters_.erase(here);
  }
  if (!in) take_back(*this, request.who);
  if (failure) std::rethrow_exception(failure);
  co_return in;
}

/// In the server's queue, until the request is granted, `until`, or its stop.
Task<bool> PermitQueue::stand(Waiter& waiter, const PermitRequest& request, SteadyTime until,
                              const Accept& accept) {
  Inbox::Subscription& inbox = waiter.inbox;
  QueuedWait queued{inbox, request.terms, request.terms.asks_after_hand_over(),
                    [&](std::uint64_t came) { return ask_in_queue(request.who, waiter, came); }};
  const std::stop_callback on_stop{request.stop,
                                   [&inbox] { inbox.post({.kind = InboxMessage::Kind::recheck}); }};
  const auto wanted = [&request] { return !request.stop.stop_requested(); };
  for (;;) {
    const std::optional<Grant> grant = co_await queued.stand(until, wanted);
    if (!grant) co_return false;
    if (accept(request.who, *grant, queued.was_handed_over())) co_return true;
    count(metrics().lock_late);  // this process stood still: back into the queue
  }
}

Task<AcquireReply> PermitQueue::ask_in_queue(Identity who, Waiter& waiter, std::uint64_t came) {
  std::uint64_t heard_before = 0;
  {
    const std::lock_guard lock{mutex_};
    waiter.leads = false;
    heard_before = messages_;
  }
  PermitReply said = co_await ask_acquire(who, inbox_->channel(), came);
  const std::lock_guard lock{mutex_};
  waiter.leads = said.leads;
  if (said.leads && messages_ != heard_before)  // a message may be younger than the reply
    waiter.inbox.post({.kind = InboxMessage::Kind::look});
  co_return std::move(said.reply);
}

// --- releases of Java programs ---

bool PermitQueue::is_listening() const {
  const std::lock_guard lock{mutex_};
  return static_cast<bool>(java_releases_.second) && inbox_->is_open();
}

/// Several coroutines may listen at once: the Store has one subscription for all. False: not heard
/// by `until`.
Task<bool> PermitQueue::listen(SteadyTime until) {
  if (is_listening()) co_return true;
  const auto hear = [weak = weak_from_this()](const Message& message) {
    if (const auto queue = weak.lock()) queue->heard(message);
  };
  auto listening = in_time(listen_beside_strangers(store(), names().channel, hear), store(), until);
  // destroyed without the mutex, which its handler locks
  std::optional<ListenerBesideStrangers> listener = co_await listening;
  if (!listener) co_return false;
  const std::lock_guard lock{mutex_};
  if (!java_releases_.second) std::swap(java_releases_, *listener);
  co_return true;
}

void PermitQueue::heard(const Message& message) {
  const std::int64_t free = free_by(message);
  Trampoline trampoline;  // before the mutex: the waiters run when it is unlocked
  const std::lock_guard lock{mutex_};
  ++messages_;
  for (const Waiter& waiter : waiters_)
    if (waiter.leads && free >= waiter.permits)
      waiter.inbox.post({.kind = InboxMessage::Kind::look});
}

}  // namespace sluice::lock
