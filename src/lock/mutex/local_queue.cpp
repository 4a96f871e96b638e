#include "lock/mutex/local_queue.hpp"

#include <sched.h>

#include "lock/hold/steps.hpp"
#include "lock/per_store.hpp"
#include "lock/wait/queued_wait.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"
#include "store/waiter.hpp"

namespace sluice::lock {
namespace {

/// The first renewal of a hold that was handed on: it tells the server the owner's name, for
/// people.
constexpr std::chrono::seconds first_report{1};

constexpr std::size_t few_waiters = 4;

/// Behind others a thread gives its turn away for a while before it sleeps: where sections are
/// short its own turn comes meanwhile, and no core has to wake up for it (16 threads on 2 cores:
/// two to three times as many sections a second).
class Crowd final : public Driver {
 public:
  void drive(Waiter& waiter) override {
    const SteadyTime until = system_clock().steady() + std::chrono::microseconds{50};
    while (!waiter.is_woken() && system_clock().steady() < until) ::sched_yield();
    waiter.event().wait();
  }
};

Driver* crowd() {
  static auto* const of_all = new Crowd;
  return of_all;
}

}  // namespace

LocalQueue::LocalQueue(std::shared_ptr<LocalQueues> queues, const std::string& name)
    : MutexWire(std::move(queues), name) {}

LocalQueue::~LocalQueue() {
  if (is_of_this_process()) queues().forget(*this);
}

LocalQueues& LocalQueue::queues() const noexcept {
  return static_cast<LocalQueues&>(LockResource::common());
}

// --- callers that want to get in ---

/// Nobody finds out that a hold without renewals was ended from outside: others ask the server.
bool LocalQueue::is_certainly_inside() const {
  return inside_ && lease_terms().watched && inside_->state.load() == HoldState::held &&
         watchdog().clock().steady() < inside_->certain_until.load();
}

Task<std::shared_ptr<Hold>> LocalQueue::try_enter(Identity who) {
  {
    const std::lock_guard lock{mutex_};
    if (is_certainly_inside()) co_return nullptr;
  }
  auto hold = co_await LockResource::try_enter(std::move(who));
  if (!hold) co_return nullptr;
  bool awaited = false;
  {
    const std::lock_guard lock{mutex_};
    awaited = go_in_alone(hold);
  }
  if (awaited) watchdog().note_waiter(*hold);
  co_return hold;
}

/// Whether others came while it was asked for, and wait.
bool LocalQueue::go_in_alone(const std::shared_ptr<Hold>& hold) {
  inside_ = hold;
  last_ = {};
  return !waiters_.empty();
}

Task<std::shared_ptr<Hold>> LocalQueue::enter(Identity who, SteadyTime until,
                                              std::stop_token stop) {
  WaiterPtr waiter;
  std::shared_ptr<Hold> in_the_way;
  {
    const std::lock_guard lock{mutex_};
    if (asking_ || !waiters_.empty() || is_certainly_inside()) {
      waiter = std::make_shared<LocalWaiter>(std::move(who));
      // The grant of the first waiter comes through the connection: while it waits it reads there.
      Driver* const driver = asking_ && waiters_.empty()      ? store().message_driver()
                             : waiters_.size() >= few_waiters ? crowd()
                                                              : nullptr;
      waiter->called = std::make_shared<Completion>(driver);
      if (!asking_ && waiters_.empty()) in_the_way = inside_;
      waiters_.push_back(waiter);
    } else {
      asking_ = true;
    }
  }
  try {
    if (in_the_way) watchdog().note_waiter(*in_the_way);
    return waiter ? wait(waiter, until, std::move(stop))
                  : ask_first(std::move(who), until, std::move(stop));
  } catch (...) {
    drop_wait(waiter);
    throw;
  }
}

/// There is no memory for a wait, or, where `waiter` is null, for the call that asks for all.
void LocalQueue::drop_wait(const WaiterPtr& waiter) {
  std::shared_ptr<Hold> hold;
  bool others_wait = false;
  {
    const std::lock_guard lock{mutex_};
    if (waiter) {
      waiters_.remove(waiter);
      hold = std::move(waiter->hold);
    } else {
      others_wait = !stops_asking_locked();
    }
  }
  if (hold) leave_in_background(std::move(hold));
  if (others_wait) spawn(ask_for_all(std::nullopt, nullptr));
}

/// Asks for the caller alone. If it is refused, the caller becomes the first of the waiters.
Task<std::shared_ptr<Hold>> LocalQueue::ask_first(Identity who, SteadyTime until,
                                                  std::stop_token stop) {
  std::unique_ptr<Inbox::Subscription> subscription;
  const SteadyTime sent = watchdog().clock().steady();
  std::optional<AcquireReply> reply;
  std::shared_ptr<Hold> hold;
  std::exception_ptr failure;
  bool waits_out = false;
  try {
    if (is_inbox_open())
      subscription = std::make_unique<Inbox::Subscription>(inbox(), std::string{who.request()});
    const std::string channel = subscription ? subscription->inbox().channel() : std::string{};
    reply = co_await ask_acquire(who, channel, 0);
    if (reply->granted) hold = begin_requested(std::move(who), *reply->granted, sent);
  } catch (const Error& error) {
    failure = std::current_exception();
    waits_out = is_outage(error) && sent < until && !stop.stop_requested();
    if (!reply && may_have_left_something(error)) take_back(*this, who);
  } catch (...) {
    failure = std::current_exception();
  }
  if (waits_out) subscription = nullptr;  // of a request that is given up
  if (hold || (failure && !waits_out)) {  // this caller is done: another waiter may have to ask
    bool others_wait = false;
    bool awaited = false;
    {
      const std::lock_guard lock{mutex_};
      if (hold) awaited = go_in_alone(hold);
      others_wait = !stops_asking_locked();
    }
    if (others_wait) spawn(ask_for_all(std::nullopt, nullptr));
    if (failure) std::rethrow_exception(failure);
    if (awaited) watchdog().note_waiter(*hold);
    co_return hold;
  }
  WaiterPtr waiter;
  try {
    waiter = std::make_shared<LocalWaiter>(who);
    waiter->called = std::make_shared<Completion>(store().message_driver());
    {
      const std::lock_guard lock{mutex_};
      waiters_.push_front(waiter);
      if (failure) trouble_ = failure;
    }
    std::optional<QueuedRequest> request;
    if (subscription)
      request = {.who = std::move(who),
                 .subscription = std::move(subscription),
                 .reply = reply,
                 .sent = sent};
    spawn(ask_for_all(std::move(request), nullptr));
  } catch (...) {
    if (waiter) drop_wait(waiter);
    drop_wait(nullptr);
    throw;
  }
  co_return co_await wait(std::move(waiter), until, std::move(stop));
}

Task<std::shared_ptr<Hold>> LocalQueue::wait(WaiterPtr waiter, SteadyTime until,
                                             std::stop_token stop) {
  try {
    const WaiterRegistry::Entry entry{*queues().registry_, key(), waiter->who};
    Clock& clock = watchdog().clock();
    std::shared_ptr<Completion> called = waiter->called;
    bool chosen = false;
    for (;;) {
      {
        const std::stop_callback on_stop{chosen ? std::stop_token{} : stop,
                                         [called] { called->complete(); }};
        const SteadyTime deadline = chosen ? SteadyTime::max() : until;
        co_await wait_until(*called, clock, deadline);
      }
      const Trampoline trampoline;  // before the lock: what is completed under it runs after it
      const std::lock_guard lock{mutex_};
      if (waiter->hold) co_return std::move(waiter->hold);
      if (waiter->failure) std::rethrow_exception(waiter->failure);
      chosen = waiter->chosen;
      if (!chosen && (clock.steady() >= until || stop.stop_requested())) {
        waiters_.remove(waiter);
        if (waiters_.empty() && subscription_)
          subscription_->post({.kind = InboxMessage::Kind::recheck});
        if (trouble_ && !stop.stop_requested()) std::rethrow_exception(trouble_);
        co_return nullptr;
      }
      waiter->called = called = std::make_shared<Completion>(store().message_driver());
    }
  } catch (...) {
    drop_wait(waiter);
    throw;
  }
}

// --- the coroutine that asks for all ---

bool LocalQueue::must_ask() {
  if (asking_ || waiters_.empty() || is_certainly_inside()) return false;
  asking_ = true;
  return true;
}

/// The coroutine that asked is done. False: waiters need it to go on.
bool LocalQueue::stops_asking() {
  const std::lock_guard lock{mutex_};
  return stops_asking_locked();
}

bool LocalQueue::stops_asking_locked() {
  subscription_ = nullptr;
  asking_ = false;
  if (lease_terms().watched) return !must_ask();
  asking_ = !waiters_.empty();  // the next one queues at the server while this one is inside
  return !asking_;
}

/// A new request, for the waiter that is first now.
std::optional<LocalQueue::QueuedRequest> LocalQueue::request_for_first() {
  Identity who;
  {
    const std::lock_guard lock{mutex_};
    if (waiters_.empty()) return std::nullopt;
    who = waiters_.front()->who;
  }
  who = who.with_request(new_request_id());
  auto subscription = std::make_unique<Inbox::Subscription>(inbox(), std::string{who.request()});
  return QueuedRequest{.who = std::move(who), .subscription = std::move(subscription)};
}

Task<void> LocalQueue::ask_for_all(std::optional<QueuedRequest> request,
                                   std::shared_ptr<Hold> ending) {
  const auto self = shared_from_this();
  for (Patience patience{watchdog().clock(), SteadyTime::max()};;) {
    MaybeOutcome outcome;
    bool is_away = false;
    bool failed = true;
    try {
      auto next = std::exchange(request, std::nullopt);
      outcome = co_await admit_one(std::move(next), ending);
      failed = false;
    } catch (const Error& failure) {
      is_away = is_outage(failure);
      fail(std::current_exception(), is_away, failure.errc() == Errc::unsynced);
    } catch (...) {
      fail(std::current_exception(), false, false);
    }
    if (ending && failed) take_back(*self, ending->who);
    ending.reset();
    if (is_away) co_await patience.pause({});
    if (outcome == GrantOutcome::admitted) co_return;
    if (!outcome && stops_asking()) co_return;
  }
}

/// Gets one of the waiters in. Nothing: there is none any more.
Task<LocalQueue::MaybeOutcome> LocalQueue::admit_one(std::optional<QueuedRequest> request,
                                                     std::shared_ptr<Hold> ending) {
  const std::shared_ptr<Inbox> heard_in = inbox();  // as long as this asks
  (void)co_await heard_in->open(SteadyTime::max());
  if (!request) request = request_for_first();
  if (!request) {
    if (ending) take_back(*this, ending->who);
    co_return std::nullopt;
  }
  if (ending) {
    const MaybeOutcome outcome = co_await end_turn(ending, *request);
    if (outcome) co_return outcome;
  }
  co_return co_await wait_in_queue(*request);
}

/// In the server's queue, until one waiter is in or there is none any more.
Task<LocalQueue::MaybeOutcome> LocalQueue::wait_in_queue(QueuedRequest& request) {
  const Identity& who = request.who;
  QueuedWait queued{*request.subscription, lease_terms(), asks_after_hand_over(),
                    [this, &who](std::uint64_t) { return ask_noting_trouble(who); }};
  if (request.reply) queued.heard(*request.reply, request.sent);
  {
    const std::lock_guard lock{mutex_};
    subscription_ = request.subscription.get();
  }
  const auto wanted = [this] {
    const std::lock_guard lock{mutex_};
    return !waiters_.empty();
  };
  std::exception_ptr failure;
  try {
    while (wanted()) {  // all waiters may have left before subscription_ was there to be told
      const std::optional<Grant> grant = co_await queued.stand(SteadyTime::max(), wanted);
      if (!grant) break;
      const GrantOutcome outcome =
          admit(who.request(), *grant, grant->token, queued.was_handed_over());
      if (outcome == GrantOutcome::unwanted) break;
      if (outcome != GrantOutcome::late) co_return outcome;
      count(metrics().lock_late);  // this process stood still: back into the queue
    }
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock{mutex_};
    subscription_ = nullptr;
  }
  take_back(*this, who);
  if (failure) std::rethrow_exception(failure);
  co_return std::nullopt;
}

/// A hold is over, and others wait in this process: another turn, or a place in the queue.
Task<LocalQueue::MaybeOutcome> LocalQueue::end_turn(std::shared_ptr<Hold> ending,
                                                    QueuedRequest& next) {
  const SteadyTime sent = watchdog().clock().steady();
  FencingToken last = ending->token;
  {
    const std::lock_guard lock{mutex_};
    last = std::max(last, last_);
  }
  PassReply reply;
  try {
    reply = co_await ask_pass(ending->who, last, next.who);
  } catch (const Error&) {
    take_back(*this, next.who);
    throw;
  }
  if (reply.gone) co_return std::nullopt;
  if (!reply.kept) {
    note_ended(*ending);
    next.reply = std::move(reply.queued);
    next.sent = sent;
    co_return std::nullopt;
  }
  const FencingToken first{reply.kept->value - hand_off().within_process + 1};
  const Grant grant{
      .token = first, .since = sent, .ttl = lease_terms().lease, .queued = ending->queued};
  const GrantOutcome outcome = admit(ending->who.request(), grant, *reply.kept, false);
  if (outcome == GrantOutcome::late || outcome == GrantOutcome::unwanted) {
    take_back(*this, ending->who);
    co_return std::nullopt;
  }
  co_return outcome;
}

LocalQueue::WaiterPtr LocalQueue::choose_first() {
  if (waiters_.empty()) return nullptr;
  WaiterPtr first = std::move(waiters_.front());
  waiters_.pop_front();
  first->chosen = true;
  return first;
}

/// Call without `mutex_`: `begin` locks the watchdog, and the watchdog's timer locks `mutex_`.
/// Null: the grant came too late, and `first` waits on.
std::shared_ptr<Hold> LocalQueue::begin_for(const WaiterPtr& first, std::string_view request,
                                            const Grant& grant, SteadyTime renew_at) {
  Identity who = first->who.with_request(request);
  Grant given = grant;
  {
    const std::lock_guard lock{mutex_};
    given.awaited = !waiters_.empty();
  }
  auto hold = begin_granted(std::move(who), given, renew_at);
  bool awaited = false;
  {
    const std::lock_guard lock{mutex_};
    first->chosen = false;
    if (hold) {
      first->hold = inside_ = hold;
      awaited = !waiters_.empty();
    } else {
      waiters_.push_front(first);
    }
    Trampoline::complete(first->called);
  }
  if (awaited) watchdog().note_waiter(*hold);
  return hold;
}

/// Gives a grant of the server to the first waiter.
LocalQueue::GrantOutcome LocalQueue::admit(std::string_view request, const Grant& grant,
                                           FencingToken last, bool handed_over) {
  const Trampoline trampoline;  // the waiter runs when all is set
  WaiterPtr first;
  {
    const std::lock_guard lock{mutex_};
    first = choose_first();
  }
  if (!first) return GrantOutcome::unwanted;
  const SteadyTime report = watchdog().clock().steady() + first_report;
  const auto hold =
      begin_for(first, request, grant, handed_over ? std::min(grant.confirm_at(), report) : report);
  if (!hold) return GrantOutcome::late;
  if (handed_over) count(metrics().lock_handed_over);
  const std::lock_guard lock{mutex_};
  turn_began_ = hold->began;
  next_ = {grant.token.value + 1};
  last_ = last;
  return stops_asking_locked() ? GrantOutcome::admitted : GrantOutcome::admitted_and_others_wait;
}

/// Asks, and notes for waiters whose time is up why they were not served.
Task<AcquireReply> LocalQueue::ask_noting_trouble(const Identity& who) {
  std::exception_ptr trouble;
  AcquireReply reply;
  try {
    reply = co_await ask_acquire(who, inbox_channel(), 0);
  } catch (...) {
    trouble = std::current_exception();
  }
  {
    const std::lock_guard lock{mutex_};
    trouble_ = trouble;
  }
  if (trouble) std::rethrow_exception(trouble);
  co_return reply;
}

/// Waiters wait out that the server is away. What else fails, fails for all of them, but for what
/// happened to the grant of the first.
void LocalQueue::fail(const std::exception_ptr& failure, bool is_away, bool is_of_first) {
  const Trampoline trampoline;
  const std::lock_guard lock{mutex_};
  subscription_ = nullptr;
  trouble_ = is_away ? failure : nullptr;
  if (is_away) return;
  do {
    if (waiters_.empty()) return;
    waiters_.front()->failure = failure;
    Trampoline::complete(waiters_.front()->called);
    waiters_.pop_front();
  } while (!is_of_first);
}

// --- the end of a hold ---

bool LocalQueue::pass_on(const std::shared_ptr<Hold>& hold) {
  const Terms& terms = lease_terms();
  const SteadyTime certain_until = hold->certain_until.load();
  SteadyTime now;
  WaiterPtr first;
  Grant grant{.since = certain_until + terms.margin - terms.lease,
              .ttl = terms.lease,
              .handed_on = true,
              .queued = hold->queued};
  bool goes_on = false;
  {
    const std::lock_guard lock{mutex_};
    if (inside_ != hold) return false;
    if (waiters_.empty()) {  // most often
      inside_ = nullptr;
      return false;
    }
    now = watchdog().clock().steady();
    goes_on = !asking_ && terms.watched && now < certain_until;
    if (goes_on) {
      asking_ = true;
      inside_ = nullptr;
    }
    if (goes_on && next_ <= last_ && now < turn_began_ + hand_off().turn) {
      first = choose_first();
      grant.token = next_;
      ++next_.value;
    }
  }
  if (!goes_on) {
    ended(*hold);
    return false;
  }
  const Trampoline trampoline;
  if (first && begin_for(first, hold->who.request(), grant, now + first_report)) {
    count(metrics().lock_handed_on);
    if (!stops_asking()) spawn(ask_for_all(std::nullopt, nullptr));
  } else {
    spawn(ask_for_all(std::nullopt, hold));
  }
  return true;
}

void LocalQueue::ended(const Hold& hold) {
  {
    const std::lock_guard lock{mutex_};
    if (inside_.get() != &hold) return;
    inside_ = nullptr;
    if (!must_ask()) return;
  }
  spawn(ask_for_all(std::nullopt, nullptr));
}

std::shared_ptr<Hold> LocalQueue::latest_hold() {
  const std::lock_guard lock{mutex_};
  return inside_;
}

// --- all queues ---

namespace {

/// The LocalQueues of one Store, by their terms.
struct QueuesByTerms : std::enable_shared_from_this<QueuesByTerms> {
  explicit QueuesByTerms(Store& its_store) : store(its_store) {}

  Store& store;
  InUse<MutexTerms, LocalQueues> all;
};

}  // namespace

LocalQueues::LocalQueues(Store& store, const MutexTerms& its_terms, std::shared_ptr<void> keeper)
    : MutexCommon(store, its_terms),
      keeper_(std::move(keeper)),
      registry_(shared_of<WaiterRegistry>(store)),
      slots_(16) {}

std::shared_ptr<LocalQueues> LocalQueues::of(Store& store, const MutexTerms& its_terms) {
  const auto known = shared_of<QueuesByTerms>(store);
  return known->all.of(its_terms,
                       [&] { return std::make_shared<LocalQueues>(store, its_terms, known); });
}

std::shared_ptr<LocalQueue> LocalQueues::queue_of(const std::string& name) {
  const std::lock_guard lock{mutex_};
  for (LocalQueue* known = slot_of(name); known; known = known->next_in_slot_)
    if (known->key() == name)
      if (const auto used = known->weak_from_this().lock())  // else its end waits for mutex_
        return std::static_pointer_cast<LocalQueue>(used);
  if (count_ == slots_.size()) grow();
  auto made = std::make_shared<LocalQueue>(shared_from_this(), name);
  LocalQueue*& slot = slot_of(name);
  made->next_in_slot_ = std::exchange(slot, made.get());
  ++count_;
  return made;
}

void LocalQueues::forget(LocalQueue& queue) {
  const std::lock_guard lock{mutex_};
  LocalQueue** at = &slot_of(queue.key());
  while (*at != &queue) at = &(*at)->next_in_slot_;
  *at = queue.next_in_slot_;
  --count_;
}

LocalQueue*& LocalQueues::slot_of(std::string_view name) {
  return slots_[std::hash<std::string_view>{}(name) % slots_.size()];
}

void LocalQueues::grow() {
  std::vector<LocalQueue*> before(2 * slots_.size());
  before.swap(slots_);
  for (LocalQueue* queue : before)
    while (queue) {
      LocalQueue*& slot = slot_of(queue->key());
      LocalQueue* const next = std::exchange(queue->next_in_slot_, slot);
      slot = std::exchange(queue, next);
    }
}

}  // namespace sluice::lock
