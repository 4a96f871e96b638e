#include "lock/mutex/wire.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lock/hold/steps.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/mutex/acquire.lua.hpp"
#include "lock/mutex/force_release.lua.hpp"
#include "lock/mutex/pass.lua.hpp"
#include "lock/mutex/recount.lua.hpp"
#include "lock/mutex/release.lua.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

std::string_view text_of(const fmt::format_int& number) { return {number.data(), number.size()}; }

/// How long whoever is handed a watched hold has to say that it took over.
constexpr milliseconds claim_time = std::chrono::seconds{2};

milliseconds claim_of(const Terms& terms) {
  return terms.watched ? std::min(terms.lease, claim_time + terms.margin) : terms.lease;
}

milliseconds held_for(const Hold& hold) {
  return std::chrono::floor<milliseconds>(hold.watchdog->clock().steady() - hold.began);
}

bool is_refusal(const Value& reply) {
  return reply.is_aggregate() && reply.as_items().size() == 3 &&
         std::ranges::all_of(reply.as_items(),
                             [](const Value& item) { return item.type() == Value::Type::integer; });
}

Error nonsense(std::string_view script, const Value& reply) {
  return Error{
      Errc::protocol,
      std::string{script} + " answered " + to_string(reply) + ", neither a token nor a time",
      Effect::unknown};
}

Answer refusal_of(const Value& reply, const Names& names) {
  const auto& items = reply.as_items();
  return {.granted = std::nullopt,
          .left = milliseconds{items[0].as_integer()},
          .time = milliseconds{items[1].as_integer()},
          .foreign_channel = items[2].as_integer() == 1 ? names.channel : std::string{}};
}

Answer answer_of(const Value& reply, const Names& names) {
  if (reply.type() == Value::Type::integer)
    return {.granted = FencingToken{static_cast<std::uint64_t>(reply.as_integer())},
            .foreign_channel = {}};
  if (is_refusal(reply)) return refusal_of(reply, names);
  throw nonsense("lock/mutex/acquire", reply);
}

}  // namespace

std::string MutexWire::ticket_of(const Identity& who, std::string_view inbox) const {
  return inbox.empty() ? std::string{}
                       : fmt::format("{} {} {} {} {} {}", who.request, terms_.terms.lease.count(),
                                     claim_of(terms_.terms).count(), inbox, who.owner, who.holder);
}

Task<Answer> MutexWire::ask_acquire(const Identity& who, std::string inbox) const {
  const std::string ticket = ticket_of(who, inbox);
  if (terms_.durability.replicas > 0) {
    auto acquiring = acquire_durably(who, ticket);
    co_return co_await acquiring;
  }
  const fmt::format_int lease{terms_.terms.lease.count()};
  auto asked = store_.run(scripts::lock_mutex_acquire, {names_.key, names_.token, names_.queue},
                          {who.owner, text_of(lease), who.request, who.holder, ticket},
                          {.repeatable = true});
  const Value reply = co_await asked;
  co_return answer_of(reply, names_);
}

Task<Answer> MutexWire::acquire_durably(Identity who, std::string ticket) const {
  const fmt::format_int lease{terms_.terms.lease.count()};
  const fmt::format_int replicas{terms_.durability.replicas};
  const fmt::format_int within{terms_.durability.within.count()};
  const std::string_view keys[] = {names_.key, names_.token, names_.queue};
  const std::string_view args[] = {who.owner, text_of(lease), who.request, who.holder, ticket};
  Batch batch;
  batch.add(scripts::lock_mutex_acquire, keys, args)
      .add({"WAIT", text_of(replicas), text_of(within)});
  auto asked = store_.run(std::move(batch), {.repeatable = true});
  const std::vector<Value> replies = co_await asked;
  for (const Value& reply : replies)
    if (reply.is_error()) throw error_of_reply(reply.as_text());
  Answer answer = answer_of(replies.at(0), names_);
  if (!answer.granted || replies.at(1).as_integer() >= terms_.durability.replicas) co_return answer;
  auto ending = ask_end(who, true);
  co_await ending;
  throw Error{Errc::unsynced,
              fmt::format("lock {} was granted, but {} of {} replicas had it within {} ms; it was "
                          "given back. Look at the replicas, wait longer, or ask for fewer",
                          quoted(names_.key), replies.at(1).as_integer(),
                          terms_.durability.replicas, terms_.durability.within.count())};
}

Task<PassAnswer> MutexWire::ask_pass(const Identity& who, const Identity& next,
                                     const std::string& inbox) const {
  const fmt::format_int bound{terms_.hand_off.across_processes};
  const fmt::format_int lease{terms_.terms.lease.count()};
  const fmt::format_int tokens{terms_.hand_off.within_process};
  const std::string ticket = ticket_of(next, inbox);
  auto asked = store_.run(
      scripts::lock_mutex_pass, {names_.key, names_.token, names_.queue},
      {who.request, names_.channel, text_of(bound), text_of(lease), text_of(tokens), ticket},
      {.repeatable = true});
  const Value reply = co_await asked;
  if (is_refusal(reply)) co_return PassAnswer{.queued = refusal_of(reply, names_)};
  if (reply.type() != Value::Type::integer) throw nonsense("lock/mutex/pass", reply);
  if (reply.as_integer() == 0) co_return PassAnswer{.gone = true, .queued = {}};
  co_return PassAnswer{.kept = FencingToken{static_cast<std::uint64_t>(reply.as_integer())},
                       .queued = {}};
}

Task<Value> MutexWire::ask_end(const Identity& who, bool repeatable) const {
  const fmt::format_int bound{terms_.hand_off.across_processes};
  return store_.run(scripts::lock_mutex_release, {names_.key, names_.token, names_.queue},
                    {who.request, names_.channel, text_of(bound), ""}, {.repeatable = repeatable});
}

Task<Value> MutexWire::ask_give_up(const Identity& who, const std::string& inbox) const {
  const fmt::format_int bound{terms_.hand_off.across_processes};
  const std::string ticket = ticket_of(who, inbox);
  return store_.run(scripts::lock_mutex_release, {names_.key, names_.token, names_.queue},
                    {who.request, names_.channel, text_of(bound), ticket}, {.repeatable = true});
}

Task<Value> MutexWire::ask_recount(const Hold& hold, std::uint32_t entries) const {
  const fmt::format_int lease{terms_.terms.lease.count()};
  const fmt::format_int count{entries};
  const fmt::format_int held{held_for(hold).count()};
  return store_.run(scripts::lock_mutex_recount, {names_.key},
                    {hold.who.request, text_of(lease), hold.who.owner, text_of(count),
                     hold.who.holder, text_of(held)},
                    {.repeatable = true});
}

Task<Value> MutexWire::ask_force_release() const {
  const fmt::format_int bound{terms_.hand_off.across_processes};
  return store_.run(scripts::lock_mutex_force_release, {names_.key, names_.token, names_.queue},
                    {names_.channel, text_of(bound)}, {.repeatable = true});
}

void MutexWire::add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const {
  renewal.keys.push_back(names_.key);
  auto& args = renewal.args;
  args.push_back(hold.who.request);
  args.push_back(std::to_string(terms_.terms.lease.count()));
  args.push_back(hold.who.owner);
  args.push_back(std::to_string(entries));
  args.push_back(hold.who.holder);
  args.push_back(std::to_string(held_for(hold).count()));
}

}  // namespace sluice::lock
