#include "lock/shared/info.hpp"

#include "lock/hold/owner.hpp"
#include "lock/shared/holds.lua.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

constexpr std::string_view last_shown = "999";  // index of a ticket

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
LockInfo::Waiter waiter_of(std::string_view ticket) {
  const auto pass_word = [&ticket] {
    const auto end = std::min(ticket.find(' '), ticket.size());
    const auto word = ticket.substr(0, end);
    ticket.remove_prefix(std::min(end + 1, ticket.size()));
    return word;
  };
  for (int word = 0; word < 4; ++word) pass_word();
  const auto owner = pass_word();
  return {.owner = {std::string{owner}}, .data = holder_data(ticket)};
}

}  // namespace

Task<LockInfo> shared_info(Store& store, const SharedNames& names) {
  auto asked =
      store.run(scripts::lock_shared_info, {names.key, names.token, names.writers, names.readers},
                {names.hold_keys, last_shown}, {.repeatable = true});
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
      info.waiters.push_back(waiter_of(ticket.as_text()));
  co_return info;
}

}  // namespace sluice::lock
