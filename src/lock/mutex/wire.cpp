#include "lock/mutex/wire.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lock/hold/replication.hpp"
#include "lock/mutex/hash_hold.hpp"
#include "lock/mutex/mutex.lua.hpp"
#include "lock/wait/acquire_reply.hpp"

namespace sluice::lock {

namespace {

std::string_view text_of(const fmt::format_int& number) { return {number.data(), number.size()}; }

}  // namespace

std::string MutexWire::ticket_of(const Identity& who, std::string_view inbox) const {
  return inbox.empty() ? std::string{}
                       : fmt::format("{} {} {} {} {} {}", who.request, terms_.terms.lease.count(),
                                     terms_.terms.claim().count(), inbox, who.owner, who.holder);
}

Task<Value> MutexWire::ask_acquire(const Identity& who, std::string_view inbox) const {
  std::string ticket = ticket_of(who, inbox);
  if (terms_.durability.replicas > 0) return acquire_durably(who, std::move(ticket));
  const fmt::format_int lease{terms_.terms.lease.count()};
  return store_.run(scripts::lock_mutex_acquire, {names_.key, names_.token, names_.queue},
                    {who.owner, text_of(lease), who.request, who.holder, ticket},
                    {.repeatable = true});
}

AcquireReply MutexWire::answer_to_acquire(const Value& reply) const {
  return acquire_reply_of(scripts::lock_mutex_acquire.name, reply, names_.channel);
}

Task<Value> MutexWire::acquire_durably(Identity who, std::string ticket) const {
  const fmt::format_int lease{terms_.terms.lease.count()};
  const std::string_view keys[] = {names_.key, names_.token, names_.queue};
  const std::string_view args[] = {who.owner, text_of(lease), who.request, who.holder, ticket};
  auto asked = run_durably(store_, scripts::lock_mutex_acquire, keys, args, terms_.durability);
  DurableReply reply = co_await asked;
  const bool granted = answer_to_acquire(reply.reply).granted.has_value();
  if (!granted || reply.is_in_enough(terms_.durability)) co_return std::move(reply.reply);
  auto ending = ask_end(who, {.repeatable = true});
  co_await ending;
  throw unsynced(names_.key, reply, terms_.durability);
}

Task<PassAnswer> MutexWire::ask_pass(const Identity& who, FencingToken last, const Identity& next,
                                     const std::string& inbox) const {
  const fmt::format_int bound{terms_.hand_off.across_processes};
  const fmt::format_int lease{terms_.terms.lease.count()};
  const fmt::format_int tokens{terms_.hand_off.within_process};
  const fmt::format_int last_of_turn{last.value};
  const std::string ticket = ticket_of(next, inbox);
  auto asked = store_.run(scripts::lock_mutex_pass, {names_.key, names_.token, names_.queue},
                          {who.request, names_.channel, text_of(bound), text_of(lease),
                           text_of(tokens), ticket, text_of(last_of_turn)},
                          {.repeatable = true});
  const Value reply = co_await asked;
  if (is_refusal(reply)) co_return PassAnswer{.queued = refusal_of(reply, names_.channel)};
  if (reply.type() != Value::Type::integer)
    throw unexpected_reply(scripts::lock_mutex_pass.name, reply);
  if (reply.as_integer() == 0) co_return PassAnswer{.gone = true, .queued = {}};
  co_return PassAnswer{.kept = FencingToken{static_cast<std::uint64_t>(reply.as_integer())},
                       .queued = {}};
}

Task<Value> MutexWire::ask_end(const Identity& who, CallOptions options) const {
  const fmt::format_int bound{terms_.hand_off.across_processes};
  return store_.run(scripts::lock_mutex_release, {names_.key, names_.token, names_.queue},
                    {who.request, names_.channel, text_of(bound), ""}, options);
}

Task<Value> MutexWire::ask_give_up(const Identity& who, const std::string& inbox) const {
  const fmt::format_int bound{terms_.hand_off.across_processes};
  const std::string ticket = ticket_of(who, inbox);
  return store_.run(scripts::lock_mutex_release, {names_.key, names_.token, names_.queue},
                    {who.request, names_.channel, text_of(bound), ticket}, {.repeatable = true});
}

Task<Value> MutexWire::ask_recount(const Hold& hold, std::uint32_t entries) const {
  return ask_hash_recount(store_, names_.key, hold, entries);
}

Task<Value> MutexWire::ask_force_release() const {
  const fmt::format_int bound{terms_.hand_off.across_processes};
  return store_.run(scripts::lock_mutex_force_release, {names_.key, names_.token, names_.queue},
                    {names_.channel, text_of(bound)}, {.repeatable = true});
}

void MutexWire::add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const {
  add_hash_hold(renewal, names_.key, hold, entries);
}

}  // namespace sluice::lock
