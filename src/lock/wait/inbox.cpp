#include "lock/wait/inbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/hash_slot.hpp"
#include "base/integer.hpp"
#include "base/random.hpp"
#include "lock/per_store.hpp"
#include "lock/text.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/log.hpp"

namespace sluice::lock {
namespace {

/// How soon a wait that has become the first of its queue looks.
constexpr std::chrono::milliseconds look_every{400};
/// A tick that comes so late says that this process stood still.
constexpr std::chrono::milliseconds stood_still_after{1500};

std::optional<std::uint64_t> take_number(std::string_view& text) {
  return parse_integer<std::uint64_t>(take_word(text));
}

std::optional<InboxMessage> message_of(std::string_view verb, std::string_view rest) {
  using std::chrono::milliseconds;
  const auto first = take_number(rest);
  if (!first) return std::nullopt;
  if (verb == "look")
    return InboxMessage{.kind = InboxMessage::Kind::look, .in = milliseconds{*first}};
  const auto at = take_number(rest);
  const auto ttl = take_number(rest);
  if (verb != "grant" || !at || !ttl) return std::nullopt;
  return InboxMessage{.kind = InboxMessage::Kind::grant,
                      .token = FencingToken{*first},
                      .at = milliseconds{*at},
                      .ttl = milliseconds{*ttl}};
}

}  // namespace

Inbox::Inbox(Store& store, std::string channel)
    : store_(store),
      clock_(store.clock()),
      channel_(std::move(channel)),
      pending_releases_(shared_of<PendingReleases>(store)) {}

Inbox::~Inbox() {
  if (ticking_) clock_.cancel(timer_);
}

bool Inbox::is_open() const { return channel_state_ == ChannelState::open; }

Task<bool> Inbox::open(SteadyTime until) {
  const auto self = shared_from_this();
  std::shared_ptr<Completion> opened;
  bool first = false;
  {
    const std::lock_guard lock{mutex_};
    if (channel_state_ == ChannelState::open) co_return true;
    first = channel_state_ == ChannelState::closed;
    channel_state_ = ChannelState::opening;
    opened = std::make_shared<Completion>(store_.driver());
    opening_waiters_.push_back(opened);
  }
  if (first) spawn(subscribe());
  if (const bool in_time = co_await wait_until(*opened, clock_, until); !in_time) co_return false;
  const std::lock_guard lock{mutex_};
  if (channel_state_ != ChannelState::open) std::rethrow_exception(failure_);
  co_return true;
}

Task<void> Inbox::subscribe() {
  const auto self = shared_from_this();
  Listener listener;
  std::exception_ptr failure;
  try {
    auto listening = store_.subscribe(channel_, [weak = weak_from_this()](const Message& message) {
      if (const auto inbox = weak.lock()) inbox->hear(message);
    });
    listener = co_await listening;
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<std::shared_ptr<Completion>> opening_waiters;
  {
    const std::lock_guard lock{mutex_};
    channel_state_ = failure ? ChannelState::closed : ChannelState::open;
    failure_ = failure;
    listener_ = std::move(listener);
    opening_waiters.swap(opening_waiters_);
  }
  for (const auto& waiter : opening_waiters) waiter->complete();
}

/// Requests that are given up leave the queue before the waiters look at it.
void Inbox::hear(const Message& message) {
  if (message.kind == Message::Kind::gap) {
    if (store_.is_sharded()) forget_time_of_server();
    pending_releases_->give_up_all();
    return look_at_all();
  }
  std::string_view rest = message.payload;
  const auto verb = take_word(rest);
  if (verb == "gone") return look_at_all();
  const auto request = take_word(rest);
  if (!call(request, verb, rest)) pending_releases_->give_up(request);
}

void Inbox::note_time(const TimeOfServer& heard) {
  const std::lock_guard lock{mutex_};
  if (heard.sent > time_of_server_.sent) time_of_server_ = heard;
}

/// Another server may have the slot now, and another clock.
void Inbox::forget_time_of_server() {
  const std::lock_guard lock{mutex_};
  time_of_server_ = {};
}

Inbox::TimeOfServer Inbox::time_of_server() const {
  const std::lock_guard lock{mutex_};
  return time_of_server_;
}

void Inbox::look_at_all() {
  const Trampoline trampoline;  // before the lock: what is completed under it runs after it
  const std::lock_guard lock{mutex_};
  std::vector<Subscription*> all;
  for (const auto& [request, box] : boxes_) all.push_back(box);
  std::ranges::sort(all, {}, &Subscription::number_);
  for (Subscription* box : all) box->post({.kind = InboxMessage::Kind::look});
}

void Inbox::look_at(std::string_view request) {
  const Trampoline trampoline;
  const std::lock_guard lock{mutex_};
  if (const auto box = boxes_.find(request); box != boxes_.end())
    box->second->post({.kind = InboxMessage::Kind::look});
}

/// False: its wait is over, and has said so to the server by itself, or tried to.
bool Inbox::call(std::string_view request, std::string_view verb, std::string_view rest) {
  const Trampoline trampoline;
  const std::lock_guard lock{mutex_};
  const auto box = boxes_.find(request);
  if (box == boxes_.end()) return false;
  if (const auto call = message_of(verb, rest)) {
    if (call->kind == InboxMessage::Kind::grant) box->second->first_looks_soon();
    box->second->post(*call);
  } else {
    log(LogLevel::warning, fmt::format("an inbox was sent something that is no call: {} {}", verb,
                                       to_string(Value::bulk_string(std::string{rest}))));
  }
  return true;
}

Inbox::Subscription::Subscription(std::shared_ptr<Inbox> inbox, std::string request)
    : inbox_(std::move(inbox)), request_(std::move(request)) {
  const std::lock_guard lock{inbox_->mutex_};
  number_ = ++inbox_->last_number_;
  inbox_->boxes_.emplace(request_, this);
}

Inbox::Subscription::~Subscription() {
  const Trampoline trampoline;
  const std::lock_guard lock{inbox_->mutex_};
  inbox_->boxes_.erase(request_);
  leave_queue();
  if (turn_ == Turn::awaited) inbox_->to_ask_.erase(turn_place_);
  if (turn_ == Turn::here) inbox_->pass_turn();
}

bool Inbox::Subscription::may_ask(bool stands) {
  const std::lock_guard lock{inbox_->mutex_};
  if (inbox_->forks_ != fork_count()) inbox_->forget_parent();
  if (turn_ != Turn::none) return turn_ == Turn::here;
  if (inbox_->asking_ < most_asking) {
    ++inbox_->asking_;
    turn_ = Turn::here;
    return true;
  }
  turn_place_ = inbox_->to_ask_.emplace(std::pair{!stands, number_}, this).first;
  turn_ = Turn::awaited;
  return false;
}

void Inbox::Subscription::asked() {
  const Trampoline trampoline;
  const std::lock_guard lock{inbox_->mutex_};
  turn_ = Turn::none;
  inbox_->pass_turn();
}

/// REQUIRES: the mutex is held.
void Inbox::pass_turn() {
  if (to_ask_.empty()) {
    if (asking_ > 0) --asking_;  // none in a child
    return;
  }
  Subscription& next = *to_ask_.extract(to_ask_.begin()).mapped();
  next.turn_ = Subscription::Turn::here;
  next.post({.kind = InboxMessage::Kind::look});
}

void Inbox::Subscription::leave_queue() {
  if (queue_.empty()) return;
  const auto queue = inbox_->queues_.find(queue_);
  queue->second.erase(place_);
  if (queue->second.empty()) inbox_->queues_.erase(queue);
  queue_.clear();
}

bool Inbox::Subscription::stand_in(std::string_view queue, SteadyTime asked) {
  const std::lock_guard lock{inbox_->mutex_};
  if (inbox_->forks_ != fork_count()) inbox_->forget_parent();
  if (queue_ != queue) {
    leave_queue();
    Queue& others = inbox_->queues_.try_emplace(std::string{queue}).first->second;
    place_ = others.insert(others.end(), this);
    queue_ = queue;
  }
  const bool stood_still = inbox_->clock_.steady() > asked + stood_still_after;
  rests_ = !stood_still && inbox_->queues_.find(queue)->second.front() != this;
  if (!inbox_->ticking_) inbox_->set_timer();
  return !rests_;
}

/// This wait is let in, though it need not be the first: readers are let in past writers. The
/// server counts on the next look of this process within a second and a half, and not on what it
/// told the first before.
void Inbox::Subscription::first_looks_soon() {
  if (const auto queue = inbox_->queues_.find(queue_); queue != inbox_->queues_.end())
    queue->second.front()->rests_ = true;
}

void Inbox::Subscription::let_others_look() {
  const Trampoline trampoline;  // before the lock: what is completed under it runs after it
  const std::lock_guard lock{inbox_->mutex_};
  const auto queue = inbox_->queues_.find(queue_);
  if (queue == inbox_->queues_.end()) return;
  for (Subscription* wait : queue->second)
    if (wait != this) wait->post({.kind = InboxMessage::Kind::look});
}

/// In a child: the waits are its parent's, and so was the timer.
void Inbox::forget_parent() {
  forks_ = fork_count();
  for (const auto& [queue, waits] : queues_)
    for (Subscription* wait : waits) wait->queue_.clear();
  queues_.clear();
  for (const auto& [place, wait] : to_ask_) wait->turn_ = Subscription::Turn::none;
  to_ask_.clear();
  asking_ = 0;
  ticking_ = false;
}

void Inbox::set_timer() {
  last_tick_ = clock_.steady();
  timer_ = clock_.after(look_every, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
  ticking_ = true;
}

void Inbox::tick() {
  const Trampoline trampoline;
  bool stood_still = false;
  {
    const std::lock_guard lock{mutex_};
    stood_still = clock_.steady() > last_tick_ + stood_still_after;
    ticking_ = false;
    if (queues_.empty()) return;
    set_timer();
    for (const auto& [queue, waits] : queues_)
      if (std::exchange(waits.front()->rests_, false))
        waits.front()->post({.kind = InboxMessage::Kind::look});
  }
  if (stood_still) look_at_all();
}

void Inbox::Subscription::post(const InboxMessage& call) {
  std::shared_ptr<Completion> arrival;
  {
    const std::lock_guard lock{mutex_};
    calls_.push_back(call);
    arrival = std::move(arrival_);
  }
  if (arrival) Trampoline::complete(std::move(arrival));
}

Task<std::optional<InboxMessage>> Inbox::Subscription::next(SteadyTime until) {
  for (;;) {
    std::shared_ptr<Completion> arrival;
    {
      const std::lock_guard lock{mutex_};
      if (!calls_.empty()) {
        const InboxMessage call = calls_.front();
        calls_.pop_front();
        co_return call;
      }
      arrival = std::make_shared<Completion>(inbox_->store_.message_driver());
      arrival_ = arrival;
    }
    if (const bool in_time = co_await wait_until(*arrival, inbox_->store_.clock(), until);
        !in_time) {
      const std::lock_guard lock{mutex_};
      arrival_ = nullptr;
      if (calls_.empty()) co_return std::nullopt;
    }
  }
}

// --- the inboxes of a process ---

namespace {

/// A short key in that slot, for people the same in every program: the least number that is in it.
/// Numbers are tried once for all slots, some ten thousand for each new one.
std::string key_in(std::uint16_t slot) {
  static std::array<std::atomic<std::uint32_t>, hash_slots> least;  // and one; 0 is not known yet
  auto& wanted = least[slot];
  for (std::uint32_t number = 0; wanted.load(std::memory_order_relaxed) == 0; ++number) {
    std::uint32_t unknown = 0;
    least[hash_slot(std::to_string(number))].compare_exchange_strong(unknown, number + 1,
                                                                     std::memory_order_relaxed);
  }
  return std::to_string(wanted.load(std::memory_order_relaxed) - 1);
}

}  // namespace

Inboxes::Inboxes(Store& store)
    : store_(store),
      channel_("sluice:inbox:" + random_hex_128()),
      only_(store.is_sharded() ? nullptr : std::make_shared<Inbox>(store, channel_)) {}

std::string Inboxes::channel_in(std::uint16_t slot) const {
  return channel_ + '{' + key_in(slot) + '}';
}

std::string Inboxes::channel_of(std::string_view name) const {
  return only_ ? channel_ : channel_in(hash_slot(name));
}

std::shared_ptr<Inbox> Inboxes::of(std::string_view name) {
  if (only_) return only_;
  const std::uint16_t slot = hash_slot(name);
  std::vector<std::shared_ptr<Inbox>> unused;  // they end without the mutex
  const std::lock_guard lock{mutex_};
  if (const auto known = by_slot_.find(slot); known != by_slot_.end()) return known->second;
  if (by_slot_.size() >= full_) {
    for (auto& [other, inbox] : by_slot_)
      if (inbox.use_count() == 1) unused.push_back(std::move(inbox));
    std::erase_if(by_slot_, [](const auto& entry) { return !entry.second; });
    full_ = 2 * by_slot_.size() + 64;
  }
  return by_slot_.emplace(slot, std::make_shared<Inbox>(store_, channel_in(slot))).first->second;
}

bool Inboxes::is_open(std::string_view name) {
  if (only_) return only_->is_open();
  const std::lock_guard lock{mutex_};
  const auto known = by_slot_.find(hash_slot(name));
  return known != by_slot_.end() && known->second->is_open();
}

}  // namespace sluice::lock
