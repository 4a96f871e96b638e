#include "lock/mutex/wire.hpp"

#include <fmt/format.h>

#include "lock/mutex/mutex.lua.hpp"

namespace sluice::lock {

MutexCommon::MutexCommon(Store& store, const MutexTerms& all)
    : LockCommon(store, all.terms, all.durability),
      hand_off(all.hand_off),
      lease(std::to_string(all.terms.lease.count())),
      most_hand_overs(std::to_string(all.hand_off.across_processes)) {}

MutexWire::MutexWire(std::shared_ptr<MutexCommon> common, const std::string& name)
    : HashLock(std::move(common), checked_name("a lock", name)) {}

std::string MutexWire::ticket_of(const Identity& who, std::string_view inbox) const {
  return inbox.empty()
             ? std::string{}
             : fmt::format("{} {} {} {} {} {}", who.request(), common().lease,
                           lease_terms().claim().count(), inbox, who.owner(), who.holder());
}

Task<AcquireReply> MutexWire::ask_acquire(const Identity& who, const std::string& inbox,
                                          std::uint64_t) {
  const std::string ticket = ticket_of(who, inbox);
  const CallNames names{key()};
  const std::string_view args[] = {who.owner(), common().lease, who.request(), who.holder(),
                                   ticket};
  return request_hold(who, scripts::lock_mutex_acquire, names.keys(), args);
}

AcquireReply MutexWire::read_acquire_reply(const Value& reply, std::string_view) const {
  if (!is_refusal(reply)) return acquire_reply_of(scripts::lock_mutex_acquire.name, reply, {}, {});
  const CallNames names{key()};
  return refusal_of(reply, names.channel(), names.queue());
}

Task<PassReply> MutexWire::ask_pass(const Identity& who, FencingToken last, const Identity& next) {
  const fmt::format_int tokens{hand_off().within_process};
  const fmt::format_int last_of_turn{last.value};
  const std::string ticket = ticket_of(next, inbox_channel());
  const CallNames names{key()};
  const std::string_view args[] = {who.request(),
                                   names.channel(),
                                   common().most_hand_overs,
                                   common().lease,
                                   {tokens.data(), tokens.size()},
                                   ticket,
                                   {last_of_turn.data(), last_of_turn.size()}};
  DurableReply durable;
  if (durability().replicas > 0) {
    auto asked = run_durably(store(), scripts::lock_mutex_pass, names.keys(), args, durability());
    durable = co_await asked;
  } else {
    auto asked = store().run(scripts::lock_mutex_pass, names.keys(), args, {.repeatable = true});
    durable.reply = co_await asked;
  }
  const Value& reply = durable.reply;
  if (is_refusal(reply))
    co_return PassReply{.queued = refusal_of(reply, names.channel(), names.queue())};
  if (reply.type() != Value::Type::integer)
    throw unexpected_reply(scripts::lock_mutex_pass.name, reply);
  if (reply.as_integer() == 0) co_return PassReply{.gone = true, .queued = {}};
  if (!durable.copies.are_enough(durability())) throw unsynced(key(), durable.copies, durability());
  co_return PassReply{.kept = FencingToken{static_cast<std::uint64_t>(reply.as_integer())},
                      .queued = {}};
}

Task<Value> MutexWire::ask_end(const Identity& who, CallOptions options) {
  const CallNames names{key()};
  const std::string_view args[] = {who.request(), names.channel(), common().most_hand_overs, ""};
  return run_end(store(), scripts::lock_mutex_release, names.keys(), args, durability(), options);
}

GiveUp MutexWire::give_up(const Identity& who) const {
  const CallNames names{key()};
  const std::string ticket = ticket_of(who, inbox_channel());
  const std::string_view args[] = {who.request(), names.channel(), common().most_hand_overs,
                                   ticket};
  return script_call(store(), scripts::lock_mutex_release, names.keys(), args, durability());
}

Task<LockInfo> MutexWire::info() { return info_of(store(), Names{key()}); }

Task<Value> MutexWire::ask_force_release() {
  const Names names{key()};
  return store().run(scripts::lock_mutex_force_release,
                     {key(), names.token, names.queue, names.looks, new_answer_key(key())},
                     {names.channel, common().most_hand_overs}, {.repeatable = true});
}

}  // namespace sluice::lock
