#include "lock/mutex/hash_hold.hpp"

#include <algorithm>
#include <string_view>

#include "lock/hold/hold.hpp"
#include "lock/hold/owner.hpp"
#include "lock/mutex/hash_hold.lua.hpp"
#include "lock/text.hpp"
#include "lock/wait/waiter_registry.hpp"
#include "sluice/lock_info.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

/// As part own of hash_hold.lua reads it.
std::string held_for(const Hold& hold) {
  if (!hold.handed_on) return "-1";
  const auto time = hold.watchdog().clock().steady() - hold.began;
  return std::to_string(std::chrono::floor<std::chrono::milliseconds>(time).count());
}

constexpr std::string_view most_waiters = "999";  // the last index that is read

milliseconds time_of(const Value& reply) {
  const auto& parts = reply.as_items();
  return milliseconds{parts.at(0).as_integer() * 1000 + parts.at(1).as_integer() / 1000};
}

std::optional<LockInfo::Holder> holder_of(const std::vector<Value>& fields, milliseconds left,
                                          milliseconds now) {
  LockInfo::Holder holder{.left = left, .data = {}};
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    const std::string& field = fields[i].as_text();
    const Value& value = fields[i + 1];
    if (field == "sluice:holder") {
      holder.data = holder_data(value.as_text());
    } else if (field == "sluice:since") {
      holder.held = now - milliseconds{number_in(value.as_text())};
    } else if (!field.starts_with("sluice:")) {
      holder.owner.text = field;
      holder.entries = static_cast<std::uint32_t>(number_in(value.as_text()));
    }
  }
  if (holder.owner.text.empty()) return std::nullopt;
  return holder;
}

/// As part is_lock of lock/hold/parts.lua, of fields that belong to Redisson: it names its owners
/// by a uuid and a number.
bool is_lock(const std::vector<Value>& fields) {
  constexpr std::size_t uuid = 36;
  bool is_ours = fields.empty();
  bool is_foreign = false;
  for (std::size_t i = 0; i < fields.size(); i += 2) {
    const std::string& field = fields[i].as_text();
    is_ours = is_ours || field == "sluice:request";
    is_foreign = is_foreign || !(field.starts_with("sluice:") || field == "mode" ||
                                 (field.size() > uuid && field[uuid] == ':'));
  }
  return is_ours || !is_foreign;
}

/// What was told longer ago than that is the word of a dead process.
constexpr milliseconds counts_for = std::chrono::seconds{60};

struct Known {
  milliseconds since{};
  std::string_view inbox;
  std::string_view owner;
  std::string_view holder;
  bool shown = false;
};

milliseconds take_time(std::string_view& text) { return milliseconds{number_in(take_word(text))}; }

/// "request lease claim inbox owner holder"
Known known_by_ticket(std::string_view ticket) {
  for (int word = 0; word < 3; ++word) take_word(ticket);
  Known waiter{.inbox = take_word(ticket), .owner = take_word(ticket), .holder = {}};
  waiter.holder = ticket;
  return waiter;
}

/// Of "seen since inbox owner holder", by how long they have waited.
std::vector<Known> known_by_word(const Value::Items& fields, milliseconds now) {
  std::vector<Known> known;
  for (std::size_t i = 1; i < fields.size(); i += 2) {
    std::string_view text = fields[i].as_text();
    if (take_time(text) + counts_for < now) continue;
    Known waiter{
        .since = take_time(text), .inbox = take_word(text), .owner = take_word(text), .holder = {}};
    waiter.holder = text;
    known.push_back(waiter);
  }
  std::ranges::stable_sort(known, {}, &Known::since);
  return known;
}

LockInfo::Waiter shown(const Known& waiter) {
  return {.owner = {std::string{waiter.owner}}, .data = holder_data(waiter.holder)};
}

/// `tickets`: the queue (lock/mutex/mutex.lua, part hand_over). `told`: what processes report of
/// their waiters that have waited for long (lock/wait/report_waiters). A ticket is that of a
/// process, by the name of the waiter that was its first when it took it: where a process reports
/// its waiters, these stand in its place. Those behind a holder of their own process come last.
/// Nobody twice.
std::vector<LockInfo::Waiter> waiters_of(const Value& tickets, const Value& told,
                                         milliseconds now) {
  std::vector<Known> known = known_by_word(told.as_items(), now);
  std::vector<LockInfo::Waiter> waiters;
  for (const Value& text : tickets.as_items()) {
    const Known ticket = known_by_ticket(text.as_text());
    bool tells = false;
    for (const bool first : {true, false}) {
      for (Known& waiter : known) {
        if (waiter.inbox != ticket.inbox || (waiter.owner == ticket.owner) != first) continue;
        tells = true;
        if (!std::exchange(waiter.shown, true)) waiters.push_back(shown(waiter));
      }
    }
    if (!tells) waiters.push_back(shown(ticket));
  }
  for (const Known& waiter : known)
    if (!waiter.shown) waiters.push_back(shown(waiter));
  return waiters;
}

}  // namespace

const Script& HashLock::renewal() const noexcept { return scripts::lock_mutex_renew; }

void HashLock::add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const {
  renewal.keys.push_back(key());
  const Identity& who = hold.who;
  for (std::string word : {std::string{who.request()}, std::to_string(hold.terms.lease.count()),
                           std::string{who.owner()}, std::to_string(entries),
                           std::string{who.holder()}, held_for(hold)})
    renewal.args.push_back(std::move(word));
}

Task<Value> HashLock::ask_recount(const Hold& hold, std::uint32_t entries) {
  return store().run(scripts::lock_mutex_recount, {key()},
                     {hold.who.request(), std::to_string(hold.terms.lease.count()),
                      hold.who.owner(), std::to_string(entries), hold.who.holder(), held_for(hold)},
                     {.repeatable = true});
}

void ask_for_hold(Batch& batch, const Names& names) {
  batch.add({"HGETALL", names.key})
      .add({"PTTL", names.key})
      .add({"TIME"})
      .add({"GET", names.token});
}

LockInfo hold_info(const std::string& name, const std::vector<Value>& replies) {
  for (const Value& reply : replies)
    if (reply.is_error()) throw error_of_reply(reply.as_text());
  if (!is_lock(replies.at(0).as_items()))
    throw Error{Errc::wrong_type,
                "the key " + quoted(name) + " is not a lock: it is a hash of something else"};
  LockInfo info;
  if (auto holder = holder_of(replies.at(0).as_items(), milliseconds{replies.at(1).as_integer()},
                              time_of(replies.at(2))))
    info.holders.push_back(*std::move(holder));
  if (replies.at(3).is_null()) return info;
  info.token = FencingToken{static_cast<std::uint64_t>(number_in(replies.at(3).as_text()))};
  // The token of a hold of ours is the time at which the server let it in.
  if (info.holders.empty() || info.holders[0].data.host.empty()) return info;
  const milliseconds granted{number_in(replies.at(3).as_text()) / 1000};
  milliseconds& held = info.holders[0].held;
  if (held == milliseconds{0}) held = std::max(time_of(replies.at(2)) - granted, held);
  return info;
}

Task<LockInfo> info_of(Store& store, Names names) {
  Batch batch;
  ask_for_hold(batch, names);
  batch.add({"LRANGE", names.queue, "0", most_waiters}).add({"HGETALL", waiters_key(names.key)});
  const std::vector<Value> replies = co_await store.run(std::move(batch));
  LockInfo info = hold_info(names.key, replies);
  info.waiters = waiters_of(replies.at(4), replies.at(5), time_of(replies.at(2)));
  co_return info;
}

}  // namespace sluice::lock
