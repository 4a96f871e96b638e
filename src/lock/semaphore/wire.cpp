#include "lock/semaphore/wire.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lock/semaphore/acquire.lua.hpp"
#include "lock/semaphore/change.lua.hpp"
#include "lock/semaphore/members.hpp"
#include "lock/semaphore/release.lua.hpp"
#include "lock/semaphore/renew.lua.hpp"
#include "lock/semaphore/update_lease.lua.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

std::string_view text_of(const fmt::format_int& number) { return {number.data(), number.size()}; }

bool is_refusal(const Value& reply) {
  return reply.is_aggregate() && reply.as_items().size() == 3 &&
         std::ranges::all_of(reply.as_items(),
                             [](const Value& item) { return item.type() == Value::Type::integer; });
}

PoolAnswer acquire_reply_of(const Value& reply) {
  if (reply.type() == Value::Type::integer)
    return {.answer = {.granted = FencingToken{}, .foreign_channel = {}}};
  if (!is_refusal(reply))
    throw Error{Errc::protocol,
                "lock/semaphore/acquire answered " + to_string(reply) + ", neither 1 nor a time",
                Effect::unknown};
  const auto& items = reply.as_items();
  return {.answer = {.granted = std::nullopt,
                     .left = milliseconds{items[0].as_integer()},
                     .time = milliseconds{items[1].as_integer()},
                     .foreign_channel = {}},
          .leads = items[2].as_integer() == 1};
}

}  // namespace

Task<PoolAnswer> PoolWire::ask_acquire(const Identity& who, const std::string& inbox) const {
  auto asked = store_.run(scripts::lock_semaphore_acquire,
                          {names_.free, names_.holds, names_.queue, names_.people, names_.turns},
                          {names_.channel, who.request, who.holder, inbox}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return acquire_reply_of(reply);
}

Task<Value> PoolWire::ask_release(const Identity& who, const std::string& ticket,
                                  CallOptions options) const {
  const std::vector<std::string> members = members_of(who);
  const std::string_view keys[] = {names_.free, names_.holds, names_.queue, names_.people,
                                   names_.turns};
  std::vector<std::string_view> args{names_.channel, ticket};
  args.insert(args.end(), members.begin(), members.end());
  return store_.run(scripts::lock_semaphore_release, keys, args, options);
}

Task<Value> PoolWire::ask_end(const Identity& who, CallOptions options) const {
  return ask_release(who, {}, options);
}

Task<Value> PoolWire::ask_give_up(const Identity& who, const std::string& inbox) const {
  return ask_release(who, fmt::format("{} {} {}", who.request, inbox, who.holder),
                     {.repeatable = true});
}

Task<bool> PoolWire::ask_end_once(std::string member, std::string request) const {
  const std::string answer = names_.answer(request);
  auto asked =
      store_.run(scripts::lock_semaphore_release,
                 {names_.free, names_.holds, names_.queue, names_.people, names_.turns, answer},
                 {names_.channel, "", member}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

Task<std::int64_t> PoolWire::ask_change(std::string what, std::int64_t number,
                                        std::string request) const {
  const std::string answer = names_.answer(request);
  const fmt::format_int amount{number};
  auto asked =
      store_.run(scripts::lock_semaphore_change,
                 {names_.free, names_.holds, names_.queue, names_.people, names_.turns, answer},
                 {names_.channel, what, text_of(amount)}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return reply.as_integer();
}

Task<std::int64_t> PoolWire::ask_free() const {
  auto asked = store_.run(scripts::lock_semaphore_change,
                          {names_.free, names_.holds, names_.queue, names_.people, names_.turns},
                          {names_.channel, "look", "0"}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return reply.as_integer();
}

void PoolWire::add_look(Batch& batch) const {
  const std::string_view keys[] = {names_.free, names_.holds, names_.queue, names_.people,
                                   names_.turns};
  const std::string_view args[] = {names_.channel, "look", "0"};
  batch.add(scripts::lock_semaphore_change, keys, args);
}

Task<bool> PoolWire::ask_update_lease(std::string member, milliseconds lease) const {
  const fmt::format_int ms{lease.count()};
  auto asked = store_.run(scripts::lock_semaphore_update_lease,
                          {names_.free, names_.holds, names_.queue, names_.people, names_.turns},
                          {names_.channel, member, text_of(ms)}, {.repeatable = true});
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

const Script& PoolWire::renewal() noexcept { return scripts::lock_semaphore_renew; }

void PoolWire::add_to(Renewal& renewal, const Hold& hold) const {
  renewal.keys.push_back(names_.holds);
  renewal.args.push_back(members_of(hold.who).front());
  renewal.args.push_back(std::to_string(hold.terms.lease.count()));
}

}  // namespace sluice::lock
