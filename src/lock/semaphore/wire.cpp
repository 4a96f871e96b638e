#include "lock/semaphore/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lock/hold/owner.hpp"
#include "lock/semaphore/semaphore.lua.hpp"
#include "lock/text.hpp"
#include "lock/wait/acquire_reply.hpp"
#include "sluice/lock_info.hpp"
#include "store/reply_error.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

PermitReply permit_reply_of(const Value& reply, std::string_view queue) {
  PermitReply answer;
  if (reply.type() == Value::Type::integer) {
    answer.reply.granted = FencingToken{};
    return answer;
  }
  if (!is_refusal(reply)) throw unexpected_reply(scripts::lock_semaphore_acquire.name, reply);
  answer.reply = refusal_of(reply, {}, queue);
  answer.leads = reply.as_items()[2].as_integer() == 1;
  return answer;
}

/// The keys of the scripts; `answer`: one key more, if it is not empty.
std::vector<std::string_view> keys_of(const PermitNames& names, std::string_view answer = {}) {
  std::vector<std::string_view> keys{names.free, names.holds, names.queue, names.people,
                                     names.turns};
  if (!answer.empty()) keys.push_back(answer);
  return keys;
}

Task<Value> ask_release(Store& store, const PermitNames& names, const Identity& who,
                        const std::string& ticket, CallOptions options) {
  const std::vector<std::string> members = members_of(who);
  std::vector<std::string_view> args{names.channel, ticket};
  args.insert(args.end(), members.begin(), members.end());
  return store.run(scripts::lock_semaphore_release, keys_of(names), args, options);
}

}  // namespace

Task<PermitReply> PermitWire::ask_acquire(const Identity& who, const std::string& inbox,
                                          std::uint64_t came) const {
  const std::string since = std::to_string(came);
  const std::string_view args[] = {names_.channel, who.request(), who.holder(), inbox, since};
  const Value reply = co_await store().run(scripts::lock_semaphore_acquire, keys_of(names_),
                                           Words{args}, {.repeatable = true});
  co_return permit_reply_of(reply, names_.queue);
}

Task<Value> PermitWire::ask_end(const Identity& who, CallOptions options) {
  return ask_release(store(), names_, who, {}, options);
}

GiveUp PermitWire::give_up_wait(const Identity& who, const std::string& inbox) const {
  const std::string ticket =
      fmt::format("{} {} {}", request_of_hold(who.request()), inbox, who.holder());
  return [&store = store(), names = names_, who, ticket] {
    return ask_release(store, names, who, ticket, {.repeatable = true});
  };
}

Task<bool> PermitWire::ask_end_once(std::string member, std::string request) const {
  const std::string answer = names_.answer(request);
  const std::string_view args[] = {names_.channel, "", member};
  const Value reply = co_await store().run(scripts::lock_semaphore_release, keys_of(names_, answer),
                                           Words{args}, {.repeatable = true});
  co_return reply.as_integer() == 1;
}

Task<std::int64_t> PermitWire::ask_change(std::string what, std::int64_t number,
                                          std::string request) const {
  const std::string answer = request.empty() ? std::string{} : names_.answer(request);
  const std::string amount = fmt::to_string(number);
  const std::string_view args[] = {names_.channel, what, amount};
  const Value reply = co_await store().run(scripts::lock_semaphore_change, keys_of(names_, answer),
                                           Words{args}, {.repeatable = true});
  co_return reply.as_integer();
}

Task<bool> PermitWire::ask_update_lease(std::string member, milliseconds lease) const {
  const std::string ms = fmt::to_string(lease.count());
  const std::string_view args[] = {names_.channel, member, ms};
  // Not sent again: a late copy would undo the change after it.
  const Value reply =
      co_await store().run(scripts::lock_semaphore_update_lease, keys_of(names_), Words{args}, {});
  co_return reply.as_integer() == 1;
}

const Script& PermitWire::renewal() const noexcept { return scripts::lock_semaphore_renew; }

void PermitWire::add_to(Renewal& renewal, const Hold& hold, std::uint32_t) const {
  renewal.keys.push_back(names_.holds);
  renewal.args.push_back(members_of(hold.who).front());
  renewal.args.push_back(std::to_string(hold.terms.lease.count()));
}

Task<Value> PermitWire::ask_recount(const Hold&, std::uint32_t) {
  return Task<Value>::ready(Value::integer(0));
}

// --- for people ---

namespace {

constexpr std::string_view last_shown = "999";  // index of a hold or ticket

milliseconds time_of(const Value& reply) {
  const auto& parts = reply.as_items();
  return milliseconds{parts.at(0).as_integer() * 1000 + parts.at(1).as_integer() / 1000};
}

milliseconds left_until(const Value& score, milliseconds now) {
  const milliseconds ends{static_cast<std::int64_t>(score.as_number())};
  return ends >= unlimited_lease ? milliseconds{-1} : ends - now;
}

using People = std::map<std::string, std::string, std::less<>>;

People people_in(const Value::Items& fields) {
  People people;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2)
    people.emplace(fields[i].as_text(), fields[i + 1].as_text());
  return people;
}

SemaphoreInfo::Holder permit_holder(const std::string& member, const People& people) {
  PermitId id;
  std::ranges::copy(member, id.bytes.begin());
  SemaphoreInfo::Holder holder{.id = id.text(), .permits = 1, .data = {}};
  if (const auto known = people.find(member); known != people.end())
    holder.data = holder_data(people_of(known->second));
  return holder;
}

SemaphoreInfo::Holder holder_of(const std::string& member, const People& people) {
  if (member.size() == PermitId{}.bytes.size()) return permit_holder(member, people);
  std::string_view holder = member;
  const auto request = take_word(holder);
  return {.id = std::string{request},
          .permits = count_of(holder),
          .data = holder_data(people_of(holder))};
}

/// "request inbox HOLDER"
SemaphoreInfo::Waiter waiter_of(std::string_view ticket) {
  take_word(ticket);
  take_word(ticket);
  return {.permits = count_of(ticket), .data = holder_data(people_of(ticket))};
}

}  // namespace

Task<SemaphoreInfo> PermitWire::ask_info() const {
  const std::string_view args[] = {names_.channel, "look", "0"};
  Batch batch;
  batch.add(scripts::lock_semaphore_change, keys_of(names_), args)
      .add({"ZRANGE", names_.holds, "0", last_shown, "WITHSCORES"})
      .add({"TIME"})
      .add({"ZRANGE", names_.queue, "0", last_shown})
      .add({"HGETALL", names_.people});
  const std::vector<Value> replies = co_await store().run(std::move(batch));
  for (const Value& reply : replies)
    if (reply.is_error())
      throw error_of_script(reply.as_text(), scripts::lock_semaphore_change, keys_of(names_));
  SemaphoreInfo info;
  info.free = replies.at(0).as_integer();
  const milliseconds now = time_of(replies.at(2));
  const People people = people_in(replies.at(4).as_items());
  for (const Value& hold : replies.at(1).as_items()) {  // pairs, as RESP3 has them
    info.holders.push_back(holder_of(hold.as_items().at(0).as_text(), people));
    info.holders.back().left = left_until(hold.as_items().at(1), now);
  }
  for (const Value& ticket : replies.at(3).as_items())
    info.waiters.push_back(waiter_of(ticket.as_text()));
  co_return info;
}

}  // namespace sluice::lock
