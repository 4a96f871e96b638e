#include "lock/semaphore/info.hpp"

#include <algorithm>
#include <map>

#include "lock/hold/owner.hpp"
#include "lock/semaphore/members.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

constexpr std::string_view most = "999";  // the last index that is read

milliseconds time_of(const Value& reply) {
  const auto& parts = reply.as_items();
  return milliseconds{parts.at(0).as_integer() * 1000 + parts.at(1).as_integer() / 1000};
}

milliseconds left_until(const Value& score, milliseconds now) {
  const milliseconds ends{static_cast<std::int64_t>(score.as_number())};
  return ends >= unlimited_lease ? milliseconds{-1} : ends - now;
}

using People = std::map<std::string, std::string, std::less<>>;

People people_in(const std::vector<Value>& fields) {
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
  const auto space = std::min(member.find(' '), member.size() - 1);
  const std::string_view holder = std::string_view{member}.substr(space + 1);
  return {.id = member.substr(0, space),
          .permits = count_of(holder),
          .data = holder_data(people_of(holder))};
}

/// "request inbox HOLDER"
SemaphoreInfo::Waiter waiter_of(std::string_view ticket) {
  for (int word = 0; word < 2; ++word)
    ticket.remove_prefix(std::min(ticket.find(' '), ticket.size() - 1) + 1);
  return {.permits = count_of(ticket), .data = holder_data(people_of(ticket))};
}

}  // namespace

Task<SemaphoreInfo> info_of(Store& store, const PoolWire& wire) {
  const PoolNames& names = wire.names();
  Batch batch;
  wire.add_look(batch);
  batch.add({"ZRANGE", names.holds, "0", most, "WITHSCORES"})
      .add({"TIME"})
      .add({"LRANGE", names.queue, "0", most})
      .add({"HGETALL", names.people});
  auto asked = store.run(std::move(batch));
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
