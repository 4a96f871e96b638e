/// FairMutex, and the FairQueue behind it.
#include "sluice/fair_mutex.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lock/fair/fair_mutex.lua.hpp"
#include "lock/fair/fair_queue.hpp"
#include "lock/hold/owner.hpp"
#include "lock/text.hpp"
#include "sluice/lock_info.hpp"
#include "sluice/store.hpp"
#include "store/durable.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

constexpr std::string_view most_waiters = "1000";

/// Of "request claim arrived inbox holder", or of nothing.
HolderData holder_of_ticket(std::string_view ticket) {
  for (int word = 0; word < 4; ++word) take_word(ticket);
  return holder_data(ticket);
}

}  // namespace

FairQueue::FairQueue(Store& store, const std::string& name, const Terms& terms,
                     const Durability& durability)
    : HashLock(std::make_shared<LockCommon>(store, terms, durability), name),
      names_(name),
      queue_(key_with_prefix("redisson_lock_queue", name)),
      deadlines_(key_with_prefix("redisson_lock_timeout", name)),
      tickets_(key_with_prefix("sluice_lock_tickets", name)) {}

Task<AcquireReply> FairQueue::ask_acquire(const Identity& who, const std::string& inbox,
                                          std::uint64_t came) {
  const std::string since = std::to_string(came);
  const std::string lease = std::to_string(lease_terms().lease.count());
  const std::string claim = std::to_string(lease_terms().claim().count());
  const std::string_view keys[] = {key(), queue_, deadlines_, tickets_, names_.token};
  const std::string_view args[] = {who.owner(),    lease, who.request(), who.holder(),
                                   names_.channel, claim, inbox,         since};
  return request_hold(who, scripts::lock_fair_acquire, keys, args);
}

/// A program with Redisson tells each waiter of its release on a channel of its own.
AcquireReply FairQueue::read_acquire_reply(const Value& reply, std::string_view owner) const {
  return acquire_reply_of(scripts::lock_fair_acquire.name, reply,
                          fmt::format("{}:{}", names_.channel, owner), queue_);
}

Task<Value> FairQueue::ask_end(const Identity& who, CallOptions options) {
  const std::string_view keys[] = {key(), queue_, deadlines_, tickets_, names_.token};
  const std::string_view args[] = {who.request(), names_.channel, ""};
  return run_end(store(), scripts::lock_fair_release, keys, args, durability(), options);
}

GiveUp FairQueue::give_up(const Identity& who) const {
  const std::string_view keys[] = {key(), queue_, deadlines_, tickets_, names_.token};
  const std::string_view args[] = {who.request(), names_.channel, who.owner()};
  return script_call(store(), scripts::lock_fair_release, keys, args, durability());
}

Task<Value> FairQueue::ask_force_release() {
  return store().run(scripts::lock_fair_force_release,
                     {key(), queue_, deadlines_, tickets_, names_.token, new_answer_key(key())},
                     {names_.channel}, {.repeatable = true});
}

void FairQueue::granted(const std::shared_ptr<Hold>& hold) {
  const std::lock_guard lock{mutex_};
  latest_ = hold;
}

std::shared_ptr<Hold> FairQueue::latest_hold() {
  const std::lock_guard lock{mutex_};
  return latest_.lock();
}

Task<LockInfo> FairQueue::info() {
  const std::string_view keys[] = {queue_, tickets_};
  const std::string_view args[] = {most_waiters};
  Batch batch;
  ask_for_hold(batch, names_);
  batch.add(scripts::lock_fair_waiters, keys, args);
  const std::vector<Value> replies = co_await store().run(std::move(batch));
  LockInfo info = hold_info(names_.key, replies);
  const auto& waiters = replies.at(4).as_items();
  for (std::size_t i = 0; i + 1 < waiters.size(); i += 2)
    info.waiters.push_back(
        {.owner = {waiters[i].as_text()}, .data = holder_of_ticket(waiters[i + 1].as_text())});
  co_return info;
}

}  // namespace sluice::lock

namespace sluice {

FairMutex::FairMutex(Store& store, std::string name, FairMutexOptions options)
    : ExclusiveLock(
          std::make_shared<lock::FairQueue>(
              store, name, lock::Terms::of(options.lease, options.margin, options.watchdog),
              checked(options.durability)),
          std::move(options.label)) {}

}  // namespace sluice
