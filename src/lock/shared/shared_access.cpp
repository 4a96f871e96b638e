#include "lock/shared/shared_access.hpp"

#include <fmt/format.h>

#include "lock/hold/owner.hpp"
#include "lock/mutex/names.hpp"
#include "lock/shared/acquire.lua.hpp"
#include "lock/shared/holds.lua.hpp"
#include "lock/shared/release.lua.hpp"
#include "lock/text.hpp"
#include "sluice/lock_info.hpp"
#include "store/durable.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

constexpr std::string_view last_ticket_shown = "999";  // index of a ticket

Error upgrade_refused(const std::string& name) {
  return Error{Errc::bad_argument,
               "an owner that reads under lock " + quoted(name) +
                   " cannot also write: two that did so would wait for each other for ever. "
                   "Release the shared hold first, or write from the beginning"};
}

std::string checked(std::string_view what, std::uint32_t number, std::uint32_t least) {
  constexpr std::uint32_t most = 1'000'000;
  if (number < least || number > most)
    throw Error{Errc::bad_argument, fmt::format("{} of a shared lock lies between {} and {}, not "
                                                "at {}",
                                                what, least, most, number)};
  return std::to_string(number);
}

LockInfo::Holder holder_of(const Value::Items& parts, milliseconds now) {
  LockInfo::Holder holder{.owner = {parts.at(1).as_text()},
                          .entries = static_cast<std::uint32_t>(parts.at(2).as_integer()),
                          .left = milliseconds{parts.at(3).as_integer()},
                          .exclusive = parts.at(0).as_text() == "w",
                          .data = {}};
  if (!parts.at(4).is_null()) {
    holder.held = now - milliseconds{parts.at(4).as_integer()};
    holder.data = holder_data(parts.at(5).as_text());
  }
  return holder;
}

/// "kind request claim inbox owner holder"
LockInfo::Waiter shared_waiter_of(std::string_view ticket) {
  for (int word = 0; word < 4; ++word) take_word(ticket);
  const auto owner = take_word(ticket);
  return {.owner = {std::string{owner}}, .data = holder_data(ticket)};
}

}  // namespace

SharedNames::SharedNames(std::string name) : key(checked_name("a lock", std::move(name))) {
  hold_keys = key_with_suffix(key, "");
  hold_keys.pop_back();  // the colon
  token = key_with_prefix("redisson_lock_token", key);
  channel = key_with_prefix("redisson_rwlock", key);
  writers = key_with_prefix("sluice_rw_write_line", key);
  readers = key_with_prefix("sluice_rw_read_line", key);
  looks = key_with_prefix("sluice_rw_looks", key);
  writing = "sluice_rw_writing:" + hold_keys;
  leases = "sluice_rw_leases:" + hold_keys;
}

std::string SharedNames::hold_key(std::string_view owner) const {
  return fmt::format("{}:{}:rwlock_timeout:1", hold_keys, owner);
}

SharedAccess::SharedAccess(Store& store, const std::string& name, Mode mode,
                           const SharedMutexOptions& options)
    : LockResource(std::make_shared<LockCommon>(
                       store, Terms::of(options.lease, options.margin, options.watchdog),
                       checked(options.durability)),
                   name),
      mode_(mode),
      names_(name),
      preference_(options.preference == SharedMutexOptions::Preference::writers ? "writers"
                                                                                : "readers"),
      overtaking_(checked("overtaking", options.overtaking, 0)),
      hand_overs_(checked("hand_overs", options.hand_overs, 1)),
      lease_(std::to_string(options.lease.count())) {}

/// An owner that reads is refused here, where the server need not be asked.
void SharedAccess::check(OwnerState& owner) const {
  const Script& reading = scripts::lock_shared_renew_read;
  if (mode_ == Mode::write && owner.find(watchdog(), key(), reading)) throw upgrade_refused(key());
}

std::string SharedAccess::ticket_of(const Identity& who, std::string_view inbox) const {
  return inbox.empty()
             ? std::string{}
             : fmt::format("{} {} {} {} {} {}", letter(), who.request(),
                           lease_terms().claim().count(), inbox, who.owner(), who.holder());
}

Task<AcquireReply> SharedAccess::ask_acquire(const Identity& who, const std::string& inbox,
                                             std::uint64_t came) {
  const std::string since = std::to_string(came);
  const std::string ticket = ticket_of(who, inbox);
  const std::string hold_key = names_.hold_key(who.owner());
  const std::string_view keys[] = {key(),        names_.token,   names_.writers, names_.readers,
                                   names_.looks, names_.writing, names_.leases,  hold_key};
  const std::string_view args[] = {names_.hold_keys, names_.channel, preference_, overtaking_,
                                   hand_overs_,      who.request(),  letter(),    who.owner(),
                                   lease_,           who.holder(),   ticket,      since};
  return request_hold(who, scripts::lock_shared_acquire, keys, args);
}

AcquireReply SharedAccess::read_acquire_reply(const Value& reply, std::string_view) const {
  if (reply.is_text() && reply.as_text() == "upgrade") throw upgrade_refused(key());
  // One wait of this process looks, for readers and writers: the server counts on one look of it,
  // and a grant that ends the waits of one kind makes the first of the other look soon.
  return acquire_reply_of(scripts::lock_shared_acquire.name, reply, names_.channel, names_.looks);
}

Task<Value> SharedAccess::ask_end(const Identity& who, CallOptions options) {
  const std::string hold_key = names_.hold_key(who.owner());
  const std::string_view keys[] = {key(),        names_.token,   names_.writers, names_.readers,
                                   names_.looks, names_.writing, names_.leases,  hold_key};
  const std::string_view args[] = {names_.hold_keys, names_.channel, preference_, overtaking_,
                                   hand_overs_,      who.request(),  letter(),    ""};
  return run_end(store(), scripts::lock_shared_release, keys, args, durability(), options);
}

GiveUp SharedAccess::give_up(const Identity& who) const {
  const std::string ticket = ticket_of(who, inbox_channel());
  const std::string hold_key = names_.hold_key(who.owner());
  const std::string_view keys[] = {key(),        names_.token,   names_.writers, names_.readers,
                                   names_.looks, names_.writing, names_.leases,  hold_key};
  const std::string_view args[] = {names_.hold_keys, names_.channel, preference_, overtaking_,
                                   hand_overs_,      who.request(),  letter(),    ticket};
  return script_call(store(), scripts::lock_shared_release, keys, args, durability());
}

Task<Value> SharedAccess::ask_recount(const Hold& hold, std::uint32_t entries) {
  return store().run(
      scripts::lock_shared_recount,
      {key(), names_.writing, names_.leases, names_.hold_key(hold.who.owner())},
      {names_.hold_keys, hold.who.request(), lease_, std::to_string(entries), letter()},
      {.repeatable = true});
}

Task<Value> SharedAccess::ask_force_release() {
  return store().run(scripts::lock_shared_force_release,
                     {key(), names_.token, names_.writers, names_.readers, names_.looks,
                      names_.writing, names_.leases, new_answer_key(key())},
                     {names_.hold_keys, names_.channel, preference_, overtaking_, hand_overs_},
                     {.repeatable = true});
}

const Script& SharedAccess::renewal() const noexcept {
  return mode_ == Mode::read ? scripts::lock_shared_renew_read : scripts::lock_shared_renew_write;
}

void SharedAccess::add_to(Renewal& renewal, const Hold& hold, std::uint32_t) const {
  renewal.keys.insert(renewal.keys.end(),
                      {key(), names_.writing, names_.leases, names_.hold_key(hold.who.owner())});
  renewal.args.push_back(names_.hold_keys);
  renewal.args.emplace_back(hold.who.request());
  renewal.args.push_back(lease_);
}

Task<LockInfo> SharedAccess::info() {
  auto asked = store().run(
      scripts::lock_shared_info,
      {key(), names_.token, names_.writers, names_.readers, names_.writing, names_.leases},
      {names_.hold_keys, last_ticket_shown}, {.repeatable = true});
  const Value reply = co_await asked;
  const auto& parts = reply.as_items();
  const milliseconds now{parts.at(0).as_integer()};
  LockInfo info;
  if (!parts.at(1).is_null())
    info.token = FencingToken{static_cast<std::uint64_t>(parts.at(1).as_integer())};
  for (const Value& holder : parts.at(2).as_items())
    info.holders.push_back(holder_of(holder.as_items(), now));
  for (const std::size_t queue : {3, 4})
    for (const Value& ticket : parts.at(queue).as_items())
      info.waiters.push_back(shared_waiter_of(ticket.as_text()));
  co_return info;
}

}  // namespace sluice::lock
