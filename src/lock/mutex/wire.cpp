#include "lock/mutex/wire.hpp"

#include <fmt/format.h>

#include "lock/mutex/mutex.lua.hpp"

namespace sluice::lock {

MutexWire::MutexWire(Store& store, const std::string& name, const MutexTerms& terms)
    : HashLock(store, name, terms.terms, terms.durability),
      names_(name),
      hand_off_(terms.hand_off),
      lease_(std::to_string(terms.terms.lease.count())),
      most_hand_overs_(std::to_string(terms.hand_off.across_processes)) {}

std::string MutexWire::ticket_of(const Identity& who, std::string_view inbox) const {
  return inbox.empty() ? std::string{}
                       : fmt::format("{} {} {} {} {} {}", who.request, lease_,
                                     lease_terms().claim().count(), inbox, who.owner, who.holder);
}

Task<AcquireReply> MutexWire::ask_acquire(const Identity& who, const std::string& inbox) {
  const std::string ticket = ticket_of(who, inbox);
  const std::string_view keys[] = {names_.key, names_.token, names_.queue, names_.looks};
  const std::string_view args[] = {who.owner, lease_, who.request, who.holder, ticket};
  return request_hold(who, scripts::lock_mutex_acquire, keys, args);
}

AcquireReply MutexWire::read_acquire_reply(const Value& reply, const std::string&) const {
  return acquire_reply_of(scripts::lock_mutex_acquire.name, reply, names_.channel, names_.queue);
}

Task<PassReply> MutexWire::ask_pass(const Identity& who, FencingToken last, const Identity& next) {
  const fmt::format_int tokens{hand_off_.within_process};
  const fmt::format_int last_of_turn{last.value};
  const std::string ticket = ticket_of(next, inbox()->channel());
  const std::string_view keys[] = {names_.key, names_.token, names_.queue, names_.looks};
  const std::string_view args[] = {who.request,
                                   names_.channel,
                                   most_hand_overs_,
                                   lease_,
                                   {tokens.data(), tokens.size()},
                                   ticket,
                                   {last_of_turn.data(), last_of_turn.size()}};
  DurableReply durable;
  if (durability().replicas > 0) {
    auto asked = run_durably(store(), scripts::lock_mutex_pass, keys, args, durability());
    durable = co_await asked;
  } else {
    auto asked = store().run(scripts::lock_mutex_pass, keys, args, {.repeatable = true});
    durable.reply = co_await asked;
  }
  const Value& reply = durable.reply;
  if (is_refusal(reply))
    co_return PassReply{.queued = refusal_of(reply, names_.channel, names_.queue)};
  if (reply.type() != Value::Type::integer)
    throw unexpected_reply(scripts::lock_mutex_pass.name, reply);
  if (reply.as_integer() == 0) co_return PassReply{.gone = true, .queued = {}};
  if (!durable.is_in_enough(durability())) throw unsynced(key(), durable, durability());
  co_return PassReply{.kept = FencingToken{static_cast<std::uint64_t>(reply.as_integer())},
                      .queued = {}};
}

Task<Value> MutexWire::ask_end(const Identity& who, CallOptions options) {
  return store().run(scripts::lock_mutex_release,
                     {names_.key, names_.token, names_.queue, names_.looks},
                     {who.request, names_.channel, most_hand_overs_, ""}, options);
}

GiveUp MutexWire::give_up(const Identity& who) const {
  return script_call(
      store(), scripts::lock_mutex_release, {names_.key, names_.token, names_.queue, names_.looks},
      {who.request, names_.channel, most_hand_overs_, ticket_of(who, inbox()->channel())},
      durability());
}

Task<LockInfo> MutexWire::info() { return info_of(store(), names_); }

Task<Value> MutexWire::ask_force_release() {
  return store().run(scripts::lock_mutex_force_release,
                     {names_.key, names_.token, names_.queue, names_.looks},
                     {names_.channel, most_hand_overs_}, {.repeatable = true});
}

}  // namespace sluice::lock
