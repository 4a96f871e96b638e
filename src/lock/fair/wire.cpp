#include "lock/fair/wire.hpp"

#include <algorithm>

#include "lock/fair/fair_mutex.lua.hpp"
#include "lock/hold/owner.hpp"
#include "lock/hold/replication.hpp"
#include "lock/mutex/info.hpp"
#include "lock/text.hpp"
#include "lock/wait/acquire_reply.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

/// A waiter that stands still costs two seconds: this, and until another has looked. Shorter than
/// Terms::claim(), since a waiter of Redisson has the same time in this queue; and for holds that
/// are not watched too, since all who wait are behind this one.
constexpr milliseconds time_to_claim{1500};

constexpr std::string_view most_waiters = "1000";

/// "request claim arrived inbox holder", or nothing.
HolderData holder_of_ticket(std::string_view ticket) {
  for (int word = 0; word < 4; ++word) take_word(ticket);
  return holder_data(ticket);
}

}  // namespace

milliseconds FairTerms::claim() const noexcept {
  return std::min(terms.lease, std::max(time_to_claim, 2 * terms.margin));
}

Task<AcquireReply> FairWire::ask_acquire(Identity who, std::string inbox) const {
  const std::string channel = names_.channel_of(who.owner);
  const std::string lease = std::to_string(terms_.terms.lease.count());
  const std::string claim = std::to_string(terms_.claim().count());
  const std::string_view keys[] = {names_.lock.key, names_.queue, names_.deadlines, names_.tickets,
                                   names_.lock.token};
  const std::string_view args[] = {who.owner,           lease, who.request, who.holder,
                                   names_.lock.channel, claim, inbox};
  const Script& script = scripts::lock_fair_acquire;
  if (terms_.durability.replicas == 0) {
    auto asked = store_.run(script, Words{keys}, Words{args}, {.repeatable = true});
    const Value reply = co_await asked;
    co_return acquire_reply_of(script.name, reply, channel);
  }
  auto asked = run_durably(store_, script, keys, args, terms_.durability);
  const DurableReply reply = co_await asked;
  AcquireReply answer = acquire_reply_of(script.name, reply.reply, channel);
  if (!answer.granted || reply.is_in_enough(terms_.durability)) co_return answer;
  auto ending = ask_end(who, {.repeatable = true});
  co_await ending;
  throw unsynced(names_.lock.key, reply, terms_.durability);
}

Task<Value> FairWire::ask_end(const Identity& who, CallOptions options) const {
  return store_.run(
      scripts::lock_fair_release,
      {names_.lock.key, names_.queue, names_.deadlines, names_.tickets, names_.lock.token},
      {who.request, names_.lock.channel, ""}, options);
}

Task<Value> FairWire::ask_give_up(const Identity& who) const {
  return store_.run(
      scripts::lock_fair_release,
      {names_.lock.key, names_.queue, names_.deadlines, names_.tickets, names_.lock.token},
      {who.request, names_.lock.channel, who.owner}, {.repeatable = true});
}

Task<Value> FairWire::ask_force_release() const {
  return store_.run(
      scripts::lock_fair_force_release,
      {names_.lock.key, names_.queue, names_.deadlines, names_.tickets, names_.lock.token},
      {names_.lock.channel}, {.repeatable = true});
}

Task<LockInfo> FairWire::ask_info() const {
  const std::string_view keys[] = {names_.queue, names_.tickets};
  const std::string_view args[] = {most_waiters};
  Batch batch;
  ask_for_hold(batch, names_.lock);
  batch.add(scripts::lock_fair_waiters, keys, args);
  auto asked = store_.run(std::move(batch));
  const std::vector<Value> replies = co_await asked;
  LockInfo info = hold_info(replies);
  const auto& waiters = replies.at(4).as_items();
  for (std::size_t i = 0; i + 1 < waiters.size(); i += 2)
    info.waiters.push_back(
        {.owner = {waiters[i].as_text()}, .data = holder_of_ticket(waiters[i + 1].as_text())});
  co_return info;
}

}  // namespace sluice::lock
