#include "lock/multi/group.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lock/hold/owner.hpp"
#include "lock/hold/pending_releases.hpp"
#include "lock/hold/replication.hpp"
#include "lock/hold/steps.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/multi/multi.lua.hpp"
#include "lock/per_store.hpp"
#include "lock/wait/acquire_reply.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"
#include "store/reply_error.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

bool are_integers(const Value& reply, std::size_t at_least) {
  return reply.is_aggregate() && reply.as_items().size() >= at_least &&
         std::ranges::all_of(reply.as_items(),
                             [](const Value& item) { return item.type() == Value::Type::integer; });
}

}  // namespace

Group::Group(Store& store, const std::vector<std::string>& names, const MutexTerms& terms)
    : store_(store),
      terms_(terms),
      watchdog_(shared_of<Watchdog>(store)),
      inboxes_(shared_of<Inboxes>(store)),
      inbox_(inboxes_->of(names.front())) {
  members_.reserve(names.size());
  names_.reserve(names.size());
  const auto common = std::make_shared<MutexCommon>(store, terms);
  for (const auto& name : names) {
    members_.push_back(std::make_shared<Member>(common, name));
    const Names& all = names_.emplace_back(name);
    keys_.insert(keys_.end(), {all.key, all.token, all.queue, all.looks});
  }
}

// --- to get in ---

Task<Group::Reply> Group::ask(Identity who, std::string inbox, bool keeps) {
  const fmt::format_int lease{terms_.terms.lease.count()};
  const fmt::format_int bound{terms_.hand_off.across_processes};
  const std::string ticket = members_.front()->ticket_of(who, inbox);
  std::vector<std::string_view> args{
      who.owner(),      {lease.data(), lease.size()}, who.request(), who.holder(), ticket,
      keeps ? "1" : "", {bound.data(), bound.size()}};
  for (const auto& all : names_) args.push_back(all.channel);
  if (terms_.durability.replicas > 0) {
    const DurableReply durable =
        co_await run_durably(store_, scripts::lock_multi_acquire, keys_, args, terms_.durability);
    Reply reply = reply_of(durable.reply);
    if (reply.tokens.empty() || durable.copies.are_enough(terms_.durability)) co_return reply;
    try {
      co_await ask_end(who, {.repeatable = true}, inbox);
    } catch (const Error& failure) {
      if (failure.errc() == Errc::closed) throw;
      give_up(who);  // see LockResource::read_durably
    }
    throw unsynced(members_.front()->key(), durable.copies, terms_.durability);
  }
  const Value reply =
      co_await store_.run(scripts::lock_multi_acquire, keys_, args, {.repeatable = true});
  co_return reply_of(reply);
}

Group::Reply Group::reply_of(const Value& value) const {
  const std::size_t many = members_.size();
  if (!are_integers(value, 2)) throw unexpected_reply("lock/multi/acquire", value);
  const auto& items = value.as_items();
  const auto which = static_cast<std::size_t>(items[0].as_integer());
  Reply reply;
  if (which == 0 && items.size() == many + 1) {
    for (std::size_t i = 1; i <= many; ++i)
      reply.tokens.push_back({static_cast<std::uint64_t>(items[i].as_integer())});
    return reply;
  }
  if (which == 0 || which > many || items.size() != 5)
    throw unexpected_reply("lock/multi/acquire", value);
  AcquireReply& refusal = reply.refusal;
  refusal.left = milliseconds{items[1].as_integer()};
  refusal.time = milliseconds{items[2].as_integer()};
  const Names& in_the_way = names_[which - 1];
  refusal.queue = in_the_way.queue;
  if (items[3].as_integer() == 1) refusal.foreign_channel = in_the_way.channel;
  if (items[4].as_integer() > 0) {  // what is kept is prolonged by the next question
    const milliseconds third = terms_.terms.lease / 3;
    refusal.left = refusal.left < milliseconds{0} ? third : std::min(refusal.left, third);
  }
  return reply;
}

/// Holds of all names. Throws Error (timeout) when the reply took too long.
Holds Group::begin_all(const Identity& who, const std::vector<FencingToken>& tokens,
                       SteadyTime sent, bool queued) {
  Holds holds;
  holds.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Grant grant{
        .token = tokens[i], .since = sent, .ttl = terms_.terms.lease, .queued = queued};
    auto hold = begin(members_[i], Identity{who}, grant, terms_.terms);
    if (!hold) {
      count(metrics().lock_late);
      for (const auto& begun : holds) watchdog_->leave(*begun);
      throw granted_too_late(*members_[i], terms_.terms);
    }
    holds.push_back(std::move(hold));
  }
  return holds;
}

Task<Holds> Group::enter(Identity who, std::optional<SteadyTime> until, std::stop_token stop) {
  members_.front()->check_process();
  return enter_patiently(Patience{watchdog_->clock(), until.value_or(SteadyTime::min())}, stop,
                         std::move(who),
                         [self = shared_from_this(), until, stop](const Identity& asks) {
                           return self->enter_once(asks, until, stop);
                         });
}

Task<Holds> Group::enter_once(Identity who, std::optional<SteadyTime> until, std::stop_token stop) {
  std::exception_ptr failure;
  bool takes_back = until.has_value();
  try {
    Holds holds = co_await ask_or_wait(who, until, std::move(stop));
    if (!holds.empty()) co_return holds;
  } catch (const Error& error) {
    failure = std::current_exception();
    if (error.errc() == Errc::closed) takes_back = false;  // the Store may be gone
    if (may_have_left_something(error) || error.errc() == Errc::timeout) takes_back = true;
  }
  if (takes_back) give_up(who);
  if (failure) std::rethrow_exception(failure);
  co_return Holds{};
}

Task<Holds> Group::ask_or_wait(const Identity& who, std::optional<SteadyTime> until,
                               std::stop_token stop) {
  if (!until || !inbox_->is_open()) {  // most callers are not refused, and need no inbox
    const SteadyTime sent = watchdog_->clock().steady();
    const Reply reply = co_await ask(who, {}, false);
    if (!until || !reply.tokens.empty()) co_return begin_all(who, reply.tokens, sent, false);
    if (const bool heard = co_await inbox_->open(*until); !heard) co_return Holds{};
  }
  // Before the question: the grant may overtake the answer.
  Inbox::Subscription inbox{inbox_, std::string{who.request()}};
  co_return co_await wait_in_queue(inbox, who, *until, std::move(stop));
}

Task<Holds> Group::wait_in_queue(Inbox::Subscription& inbox, const Identity& who, SteadyTime until,
                                 std::stop_token stop) {
  bool keeps = false;
  std::vector<FencingToken> tokens;
  const auto ask_in_queue = [&](std::uint64_t) -> Task<AcquireReply> {
    Reply reply = co_await ask(who, inbox_->channel(), std::exchange(keeps, true));
    if (!reply.tokens.empty()) reply.refusal.granted = reply.tokens.front();
    tokens = std::move(reply.tokens);
    co_return std::move(reply.refusal);
  };
  const std::stop_callback on_stop{stop,
                                   [&inbox] { inbox.post({.kind = InboxMessage::Kind::recheck}); }};
  // A message is of one name; the question behind it is for all.
  QueuedWait queued{inbox, terms_.terms, true, ask_in_queue};
  auto standing = queued.stand(until, [&stop] { return !stop.stop_requested(); });
  const std::optional<Grant> grant = co_await standing;
  if (!grant) co_return Holds{};
  co_return begin_all(who, tokens, grant->since, true);
}

// --- the end ---

/// `inbox`: the inbox named in the ticket that may be in a queue; empty: there is no ticket.
std::vector<std::string> Group::words_of_end(const Identity& who, const std::string& inbox) const {
  std::vector<std::string> words{std::string{who.request()},
                                 std::to_string(terms_.hand_off.across_processes),
                                 members_.front()->ticket_of(who, inbox)};
  for (const auto& all : names_) words.push_back(all.channel);
  return words;
}

Task<Value> Group::ask_end(Identity who, CallOptions options, std::string inbox) {
  const auto words = words_of_end(who, inbox);
  const std::vector<std::string_view> args{words.begin(), words.end()};
  Value reply = co_await run_end(store_, scripts::lock_multi_release, keys_, args,
                                 terms_.durability, options);
  if (!are_integers(reply, members_.size())) throw unexpected_reply("lock/multi/release", reply);
  co_return reply;
}

Task<bool> Group::leave(Holds holds, CallOptions options) {
  bool lost = false;
  bool known = false;  // the server may still have a hold
  for (const auto& hold : holds) {
    const auto before = watchdog_->leave(*hold);
    lost |= before.state == HoldState::lost;
    known |= before.state != HoldState::lost || before.cause != LostCause::taken;
    if (before.state == HoldState::held)
      metrics().lock_hold.observe(watchdog_->clock().steady() - hold->began);
  }
  if (!known) co_return false;
  const Identity who = holds.front()->who;
  if (holds.front()->queued) {
    const auto again = [&store = store_, name = members_.front()->key(),
                        request = std::string{who.request()},
                        give_up = giving_up(who)] { take_back(store, name, request, give_up); };
    shared_of<PendingReleases>(store_)->note_ended(std::string{who.request()}, again);
  }
  std::optional<Value> reply;
  try {
    reply = co_await ask_end(who, options, {});
  } catch (const Error& failure) {
    if (!may_have_left_something(failure)) throw;
  }
  // Asked again, "gone" answers the first request, if the hold is certain.
  const bool again = !reply;
  if (again) {
    reply = co_await ask_end(who, {.repeatable = true}, {});
  }
  const SteadyTime now = watchdog_->clock().steady();
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (holds[i]->state.load() == HoldState::lost || reply->as_items()[i].as_integer() == 1)
      continue;
    if (again && now < holds[i]->certain_until.load()) continue;
    count(metrics().lock_lost);  // unnoticed until now
    lost = true;
  }
  co_return !lost;
}

Task<void> Group::leave_and_report(Holds holds) {
  const auto self = shared_from_this();
  const std::string name = members_.front()->key();
  const auto report = [&name](const std::exception& failure) {
    count(metrics().lock_release_failures);
    log(LogLevel::error, "lock " + quoted(name) +
                             " and those taken with it were not released and " +
                             "end with their lease: " + failure.what());
  };
  try {
    co_await leave(holds, {.unhurried = true});
  } catch (const Error& failure) {
    report(failure);
    const Identity& who = holds.front()->who;
    if (is_outage(failure))
      take_back_later(store_, name, std::string{who.request()}, giving_up(who), failure);
  } catch (const std::exception& failure) {
    report(failure);
  }
}

void Group::leave_in_background(Holds holds) noexcept {
  try {
    spawn(leave_and_report(std::move(holds)));
  } catch (const std::exception&) {  // no memory for the coroutine
    count(metrics().lock_release_failures);
  }
}

/// May be called as long as the Store lives, also after this Group.
GiveUp Group::giving_up(const Identity& who) const {
  const auto words = words_of_end(who, inbox_->channel());
  const std::vector<std::string_view> args{words.begin(), words.end()};
  return script_call(store_, scripts::lock_multi_release, keys_, args, terms_.durability);
}

void Group::give_up(const Identity& who) noexcept try {
  take_back(store_, members_.front()->key(), std::string{who.request()}, giving_up(who));
} catch (const std::exception&) {  // no memory for the words
  count(metrics().lock_release_failures);
}

}  // namespace sluice::lock
