#include "lock/mutex/local_queue.hpp"

#include "lock/hold/steps.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/mutex/hash_hold.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::lock {
namespace {

/// A hold of which the server knows little is renewed so soon: with its owner's name, for people.
constexpr std::chrono::seconds first_report{1};

}  // namespace

LocalQueue::LocalQueue(Store& store, const std::string& name, MutexTerms terms,
                       std::shared_ptr<Watchdog> watchdog, std::shared_ptr<Inbox> inbox,
                       std::shared_ptr<WaiterRegistry> registry)
    : Resource(store, name),
      wire_(store, name, std::move(terms)),
      watchdog_(std::move(watchdog)),
      inbox_(std::move(inbox)),
      waiters_(std::move(registry)) {}

const Script& LocalQueue::renewal() const noexcept { return hash_hold_renewal(); }
void LocalQueue::add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const {
  wire_.add_to(renewal, hold, entries);
}
Task<Value> LocalQueue::ask_end(const Identity& who, CallOptions options) {
  return wire_.ask_end(who, options);
}
GiveUp LocalQueue::give_up(const Identity& who) const {
  return [wire = wire_, who, inbox = inbox_->channel()] { return wire.ask_give_up(who, inbox); };
}
Task<Value> LocalQueue::ask_recount(const Hold& hold, std::uint32_t entries) {
  return wire_.ask_recount(hold, entries);
}

// --- those who want to get in ---

bool LocalQueue::is_certainly_inside() const {
  return inside_ && inside_->state.load() == HoldState::held &&
         watchdog_->clock().steady() < inside_->certain_until.load();
}

Task<std::shared_ptr<Hold>> LocalQueue::try_enter(Identity who) {
  {
    const std::lock_guard lock{mutex_};
    if (is_certainly_inside()) co_return nullptr;
  }
  const SteadyTime sent = watchdog_->clock().steady();
  auto asking = ask(who, {});
  const AcquireReply answer = co_await asking;
  if (!answer.granted) co_return nullptr;
  auto hold = begin_alone(std::move(who), answer, sent);
  const std::lock_guard lock{mutex_};
  go_in_alone(hold);
  co_return hold;
}

/// What came of a question of one for himself. Throws Error (timeout) when it came too late.
std::shared_ptr<Hold> LocalQueue::begin_alone(Identity who, const AcquireReply& answer,
                                              SteadyTime sent) {
  const Terms& terms = wire_.terms().terms;
  const Grant grant{.token = *answer.granted, .since = sent, .ttl = terms.lease};
  if (auto hold = begin(watchdog_, shared_from_this(), std::move(who), grant, terms)) return hold;
  count(metrics().lock_late);
  take_back(*this, who);
  throw granted_too_late(*this, terms);
}

void LocalQueue::go_in_alone(const std::shared_ptr<Hold>& hold) {
  inside_ = hold;
  last_ = {};
}

Task<std::shared_ptr<Hold>> LocalQueue::enter(Identity who, SteadyTime until,
                                              std::stop_token stop) {
  WaiterPtr waiter;
  {
    const std::lock_guard lock{mutex_};
    if (asking_ || !local_waiters_.empty() || is_certainly_inside()) {
      waiter = std::make_shared<LocalWaiter>(std::move(who));
      // Its grant comes through the connection, if it comes: whoever waits for that reads it.
      waiter->called = std::make_shared<Completion>(
          asking_ && local_waiters_.empty() ? store().driver() : nullptr);
      local_waiters_.push_back(waiter);
    } else {
      asking_ = true;
    }
  }
  return waiter ? wait(std::move(waiter), until, std::move(stop))
                : ask_first(std::move(who), until, std::move(stop));
}

Task<AcquireReply> LocalQueue::ask(Identity who, std::string inbox) {
  try {
    auto asking = wire_.ask_acquire(who, inbox);
    const Value reply = co_await asking;
    co_return wire_.answer_to_acquire(reply);
  } catch (const Error& failure) {
    if (may_have_left_something(failure)) take_back(*this, who);
    throw;
  }
}

Task<std::shared_ptr<Hold>> LocalQueue::ask_first(Identity who, SteadyTime until,
                                                  std::stop_token stop) {
  std::optional<QueuedRequest> place;
  if (inbox_->is_open())
    place = QueuedRequest{.who = who,
                          .box = std::make_unique<Inbox::Subscription>(inbox_, who.request)};
  const SteadyTime sent = watchdog_->clock().steady();
  AcquireReply answer;
  std::shared_ptr<Hold> hold;
  std::exception_ptr failure;
  try {
    auto asking = wire_.ask_acquire(who, place ? inbox_->channel() : std::string_view{});
    const Value reply = co_await asking;
    answer = wire_.answer_to_acquire(reply);
  } catch (const Error& error) {
    failure = std::current_exception();
    if (may_have_left_something(error)) take_back(*this, who);
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    if (answer.granted) hold = begin_alone(std::move(who), answer, sent);
  } catch (...) {
    failure = std::current_exception();
  }
  if (hold || failure) {  // the others have their own luck
    bool others = false;
    {
      const std::lock_guard lock{mutex_};
      if (hold) go_in_alone(hold);
      others = !stops_asking_locked();
    }
    if (others) spawn(stand_for_all(std::nullopt, nullptr));
    if (failure) std::rethrow_exception(failure);
    co_return hold;
  }
  auto waiter = std::make_shared<LocalWaiter>(who);
  waiter->called = std::make_shared<Completion>(store().driver());
  {
    const std::lock_guard lock{mutex_};
    local_waiters_.push_front(waiter);
  }
  if (place) {
    place->answer = std::move(answer);
    place->sent = sent;
  }
  spawn(stand_for_all(std::move(place), nullptr));
  auto waiting = wait(std::move(waiter), until, std::move(stop));
  co_return co_await waiting;
}

Task<std::shared_ptr<Hold>> LocalQueue::wait(WaiterPtr waiter, SteadyTime until,
                                             std::stop_token stop) {
  const WaiterRegistry::Entry entry{*waiters_, wire_.names().waiters, waiter->who};
  Clock& clock = watchdog_->clock();
  std::shared_ptr<Completion> called = waiter->called;
  bool chosen = false;
  for (;;) {
    {
      const std::stop_callback on_stop{chosen ? std::stop_token{} : stop,
                                       [called] { called->complete(); }};
      auto waiting = wait_until(*called, clock, chosen ? SteadyTime::max() : until);
      co_await waiting;
    }
    const Trampoline trampoline;  // whoever is roused runs without the mutex
    const std::lock_guard lock{mutex_};
    if (waiter->hold) co_return std::move(waiter->hold);
    if (waiter->failure) std::rethrow_exception(waiter->failure);
    chosen = waiter->chosen;
    if (!chosen && (clock.steady() >= until || stop.stop_requested())) {
      local_waiters_.remove(waiter);
      if (local_waiters_.empty() && box_) box_->post({.kind = InboxMessage::Kind::recheck});
      co_return nullptr;
    }
    waiter->called = called = std::make_shared<Completion>(store().driver());
  }
}

// --- one who asks for all ---

bool LocalQueue::must_ask() {
  if (asking_ || local_waiters_.empty() || is_certainly_inside()) return false;
  asking_ = true;
  return true;
}

/// Whoever asked has done; true unless somebody still needs it.
bool LocalQueue::stops_asking() {
  const std::lock_guard lock{mutex_};
  return stops_asking_locked();
}

bool LocalQueue::stops_asking_locked() {
  box_ = nullptr;
  asking_ = false;
  if (wire_.terms().terms.watched) return !must_ask();
  asking_ =
      !local_waiters_.empty();  // the next of ours stands in the queue while this one is inside
  return !asking_;
}

/// For whoever is first now, by a new request.
std::optional<LocalQueue::QueuedRequest> LocalQueue::place_for_first() {
  Identity who;
  {
    const std::lock_guard lock{mutex_};
    if (local_waiters_.empty()) return std::nullopt;
    who = local_waiters_.front()->who;
  }
  who.request = new_request_id();
  auto box = std::make_unique<Inbox::Subscription>(inbox_, who.request);
  return QueuedRequest{.who = std::move(who), .box = std::move(box)};
}

Task<void> LocalQueue::stand_for_all(std::optional<QueuedRequest> place,
                                     std::shared_ptr<Hold> ending) {
  const auto self = shared_from_this();
  for (;;) {
    std::optional<GrantOutcome> outcome;
    try {
      auto standing = stand_once(std::exchange(place, std::nullopt), ending);
      outcome = co_await standing;
    } catch (...) {
      if (ending) take_back(*self, ending->who);
      fail_all(std::current_exception());
    }
    ending.reset();
    if (outcome == GrantOutcome::admitted) co_return;
    if (!outcome && stops_asking()) co_return;
  }
}

/// Gets one of ours in. Nothing: nobody wants to.
Task<std::optional<LocalQueue::GrantOutcome>> LocalQueue::stand_once(
    std::optional<QueuedRequest> place, std::shared_ptr<Hold> ending) {
  auto opening = inbox_->open();
  co_await opening;
  if (!place) place = place_for_first();
  if (!place) {
    if (ending) take_back(*this, ending->who);
    co_return std::nullopt;
  }
  if (ending) {
    auto passing = end_turn(ending, *place);
    const auto outcome = co_await passing;
    if (outcome) co_return outcome;
  }
  auto standing = stand(*place);
  co_return co_await standing;
}

/// In the server's queue, until somebody of ours is in or nobody wants to be any more.
Task<std::optional<LocalQueue::GrantOutcome>> LocalQueue::stand(QueuedRequest& place) {
  const Identity& who = place.who;
  QueuedWait line{*place.box, wire_.terms().terms.lease,
                  [this, &who] { return ask(who, inbox_->channel()); }};
  if (place.answer) line.heard(*place.answer, place.sent);
  {
    const std::lock_guard lock{mutex_};
    box_ = place.box.get();
  }
  const auto wanted = [this] {
    const std::lock_guard lock{mutex_};
    return !local_waiters_.empty();
  };
  std::exception_ptr failure;
  try {
    while (wanted()) {  // everybody may have gone before the box was there to be told
      auto standing = line.stand(SteadyTime::max(), wanted);
      const std::optional<Grant> grant = co_await standing;
      if (!grant) break;
      const bool handed_over = line.was_handed_over();
      // The replicas have to know it first: by another question, which is answered by a grant.
      if (handed_over && wire_.terms().durability.replicas > 0) continue;
      const GrantOutcome outcome = admit(who.request, *grant, grant->token, handed_over);
      if (outcome == GrantOutcome::unwanted) break;
      if (outcome != GrantOutcome::late) co_return outcome;
      count(metrics().lock_late);  // it stood still, and another has the lock: back into the queue
    }
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock{mutex_};
    box_ = nullptr;
  }
  take_back(*this, who);
  if (failure) std::rethrow_exception(failure);
  co_return std::nullopt;
}

/// A hold is over and others of ours wait: another turn of ours, or our place in the queue.
Task<std::optional<LocalQueue::GrantOutcome>> LocalQueue::end_turn(std::shared_ptr<Hold> ending,
                                                                   QueuedRequest& next) {
  const SteadyTime sent = watchdog_->clock().steady();
  FencingToken last = ending->token;
  {
    const std::lock_guard lock{mutex_};
    last = std::max(last, last_);
  }
  auto passing = wire_.ask_pass(ending->who, last, next.who, inbox_->channel());
  PassAnswer answer;
  try {
    answer = co_await passing;
  } catch (const Error&) {
    take_back(*this, next.who);
    throw;
  }
  if (answer.gone) co_return std::nullopt;
  if (!answer.kept) {
    next.answer = std::move(answer.queued);
    next.sent = sent;
    co_return std::nullopt;
  }
  const auto tokens = wire_.terms().hand_off.within_process;
  const Grant grant{
      .token = {answer.kept->value - tokens + 1}, .since = sent, .ttl = wire_.terms().terms.lease};
  const GrantOutcome outcome = admit(ending->who.request, grant, *answer.kept, false);
  if (outcome == GrantOutcome::late || outcome == GrantOutcome::unwanted) {
    take_back(*this, ending->who);
    co_return std::nullopt;
  }
  co_return outcome;
}

LocalQueue::WaiterPtr LocalQueue::choose_first() {
  if (local_waiters_.empty()) return nullptr;
  WaiterPtr first = std::move(local_waiters_.front());
  local_waiters_.pop_front();
  first->chosen = true;
  return first;
}

/// Without the mutex, for which the watchdog's timer may wait. Null: too late; it waits on.
std::shared_ptr<Hold> LocalQueue::begin_for(const WaiterPtr& first, const std::string& request,
                                            const Grant& grant, SteadyTime renew_at) {
  Identity who = first->who;
  who.request = request;
  auto hold =
      begin(watchdog_, shared_from_this(), std::move(who), grant, wire_.terms().terms, renew_at);
  const std::lock_guard lock{mutex_};
  first->chosen = false;
  if (hold) {
    first->hold = inside_ = hold;
  } else {
    local_waiters_.push_front(first);
  }
  Trampoline::complete(first->called);
  return hold;
}

/// Gives a grant of the server to whoever is first.
LocalQueue::GrantOutcome LocalQueue::admit(const std::string& request, const Grant& grant,
                                           FencingToken last, bool handed_over) {
  Trampoline trampoline;  // whoever is called runs when all is set
  WaiterPtr first;
  {
    const std::lock_guard lock{mutex_};
    first = choose_first();
  }
  if (!first) return GrantOutcome::unwanted;
  const SteadyTime report = watchdog_->clock().steady() + first_report;
  const SteadyTime claim = grant.since + grant.ttl / 3;
  const auto hold =
      begin_for(first, request, grant, handed_over ? std::min(claim, report) : report);
  if (!hold) return GrantOutcome::late;
  if (handed_over) count(metrics().lock_handed_over);
  const std::lock_guard lock{mutex_};
  turn_began_ = hold->began;
  next_ = {grant.token.value + 1};
  last_ = last;
  return stops_asking_locked() ? GrantOutcome::admitted : GrantOutcome::admitted_and_others_wait;
}

void LocalQueue::fail_all(const std::exception_ptr& failure) {
  Trampoline trampoline;
  const std::lock_guard lock{mutex_};
  box_ = nullptr;
  for (const auto& waiter : local_waiters_) {
    waiter->failure = failure;
    Trampoline::complete(waiter->called);
  }
  local_waiters_.clear();
}

// --- the end of a hold ---

bool LocalQueue::pass_on(const std::shared_ptr<Hold>& hold) {
  const Trampoline trampoline;
  const Terms& terms = wire_.terms().terms;
  const SteadyTime now = watchdog_->clock().steady();
  const SteadyTime certain_until = hold->certain_until.load();
  WaiterPtr first;
  Grant grant{.since = certain_until + terms.margin - terms.lease, .ttl = terms.lease};
  {
    const std::lock_guard lock{mutex_};
    if (inside_ != hold || asking_ || local_waiters_.empty() || !terms.watched ||
        now >= certain_until)
      return false;
    asking_ = true;
    inside_ = nullptr;
    if (next_ <= last_ && now < turn_began_ + wire_.terms().hand_off.turn) {
      first = choose_first();
      grant.token = next_;
      ++next_.value;
    }
  }
  if (first && begin_for(first, hold->who.request, grant, now + first_report)) {
    count(metrics().lock_handed_on);
    if (!stops_asking()) spawn(stand_for_all(std::nullopt, nullptr));
  } else {
    spawn(stand_for_all(std::nullopt, hold));
  }
  return true;
}

Task<bool> LocalQueue::force_release() {
  std::shared_ptr<Hold> inside;
  {
    const std::lock_guard lock{mutex_};
    inside = inside_;  // before: afterwards it may be the next one
  }
  auto asked = wire_.ask_force_release();
  const Value reply = co_await asked;
  const bool ended = reply.as_integer() == 1;
  if (ended && inside) watchdog_->lose(inside, LostCause::taken);
  co_return ended;
}

void LocalQueue::ended(const Hold& hold) {
  {
    const std::lock_guard lock{mutex_};
    if (inside_.get() != &hold) return;
    inside_ = nullptr;
    if (!must_ask()) return;
  }
  spawn(stand_for_all(std::nullopt, nullptr));
}

}  // namespace sluice::lock
