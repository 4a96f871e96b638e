#include "lock/semaphore/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lock/hold/owner.hpp"
#include "lock/semaphore/semaphore.lua.hpp"
#include "lock/text.hpp"
#include "lock/wait/acquire_reply.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

PermitReply permit_reply_of(const Value& reply) {
  PermitReply answer;
  if (reply.type() == Value::Type::integer) {
    answer.reply.granted = FencingToken{};
    return answer;
  }
  if (!is_refusal(reply))
    throw Error{Errc::protocol,
                "lock/semaphore/acquire answered " + to_string(reply) + ", neither 1 nor a time",
                Effect::unknown};
  answer.reply = refusal_of(reply, {});
  answer.leads = reply.as_items()[2].as_integer() == 1;
  return answer;
}

}  // namespace

PermitWire::Keys PermitWire::keys(std::string_view answer) const {
  Keys keys{names_.free, names_.holds, names_.queue, names_.people, names_.turns};
  if (!answer.empty()) keys.push_back(answer);
  return keys;
}

Task<PermitReply> PermitWire::ask_acquire(const Identity& who, const std::string& inbox) const {
  const std::string_view args[] = {names_.channel, who.request, who.holder, inbox};
  auto asked =
      store_.run(scripts::lock_semaphore_acquire, keys(), Words{args}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return permit_reply_of(reply);
}

Task<Value> PermitWire::ask_release(const Identity& who, const std::string& ticket,
                                    CallOptions options) const {
  const std::vector<std::string> members = members_of(who);
  std::vector<std::string_view> args{names_.channel, ticket};
  args.insert(args.end(), members.begin(), members.end());
  return store_.run(scripts::lock_semaphore_release, keys(), args, options);
}

Task<Value> PermitWire::ask_end(const Identity& who, CallOptions options) const {
  return ask_release(who, {}, options);
}

Task<Value> PermitWire::ask_give_up(const Identity& who, const std::string& inbox) const {
  return ask_release(who, fmt::format("{} {} {}", who.request, inbox, who.holder),
                     {.repeatable = true});
}

Task<bool> PermitWire::ask_end_once(std::string member, std::string request) const {
  const std::string answer = names_.answer(request);
  const std::string_view args[] = {names_.channel, "", member};
  auto asked =
      store_.run(scripts::lock_semaphore_release, keys(answer), Words{args}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

Task<std::int64_t> PermitWire::ask_change(std::string what, std::int64_t number,
                                          std::string request) const {
  const std::string answer = request.empty() ? std::string{} : names_.answer(request);
  const std::string amount = fmt::to_string(number);
  const std::string_view args[] = {names_.channel, what, amount};
  auto asked =
      store_.run(scripts::lock_semaphore_change, keys(answer), Words{args}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return reply.as_integer();
}

Task<bool> PermitWire::ask_update_lease(std::string member, milliseconds lease) const {
  const std::string ms = fmt::to_string(lease.count());
  const std::string_view args[] = {names_.channel, member, ms};
  auto asked =
      store_.run(scripts::lock_semaphore_update_lease, keys(), Words{args}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

const Script& PermitWire::renewal() noexcept { return scripts::lock_semaphore_renew; }

void PermitWire::add_to(Renewal& renewal, const Hold& hold) const {
  renewal.keys.push_back(names_.holds);
  renewal.args.push_back(members_of(hold.who).front());
  renewal.args.push_back(std::to_string(hold.terms.lease.count()));
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
  batch.add(scripts::lock_semaphore_change, keys(), args)
      .add({"ZRANGE", names_.holds, "0", last_shown, "WITHSCORES"})
      .add({"TIME"})
      .add({"LRANGE", names_.queue, "0", last_shown})
      .add({"HGETALL", names_.people});
  auto asked = store_.run(std::move(batch));
  const std::vector<Value> replies = co_await asked;
  for (const Value& reply : replies)
    if (reply.is_error()) throw error_of_reply(reply.as_text());
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
