#include "cache/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/random.hpp"
#include "cache/cache.lua.hpp"
#include "store/reply_error.hpp"

namespace sluice::cache {
namespace {

constexpr CallOptions repeatable{.repeatable = true};
constexpr std::string_view most_due = "100";

Error odd_reply(const Store& store, const Value& reply) {
  return Error{Errc::protocol, fmt::format("a script of the cache was answered by {} with {}",
                                           store.describe(), to_string(reply, 200))};
}

/// The items of a reply, at least so many.
const Value::Items& items_of(const Store& store, const Value& reply, std::size_t least) {
  if (!reply.is_aggregate() || reply.as_items().size() < least) throw odd_reply(store, reply);
  return reply.as_items();
}

/// It was done, and a server that is lost may take it along.
Error unsynced(const std::vector<std::string>& value_keys, const Copies& copies,
               const Durability& durability) {
  const std::size_t more = value_keys.size() - 1;
  return Error{Errc::unsynced,
               fmt::format("'{}'{} was changed, but {}: do it again, look at the replicas, wait "
                           "longer, or ask for fewer",
                           shown(value_keys.front()),
                           more > 0 ? fmt::format(", as {} more,", more) : std::string{},
                           copies.shortfall(durability)),
               Effect::done};
}

/// A wait that a reply tells.
std::chrono::milliseconds sane(const Value& ms) {
  return std::chrono::milliseconds{std::clamp<std::int64_t>(ms.as_integer(), 0, 1'000'000'000'000)};
}

}  // namespace

Task<Value> Wire::run_to_count(const Script& script, Words keys, Words words, CallOptions options) {
  if (durability_.replicas == 0) return store_.run(script, keys, words, options);
  constexpr auto reply_of = [](Task<DurableReply> asked, std::string key,
                               Durability durability) -> Task<Value> {
    DurableReply durable = co_await asked;
    if (!durable.copies.are_enough(durability)) throw unsynced({key}, durable.copies, durability);
    co_return std::move(durable.reply);
  };
  return reply_of(run_durably(store_, script, keys, words, durability_, options),
                  std::string{keys.front()}, durability_);
}

Task<Value> Wire::fetch(std::string value_key, SteadyTime until) {
  const CallOptions in_time{.until = std::min(until, patience())};
  if (clock_.is_known(store_.clock().steady())) return store_.run({"GET", value_key}, in_time);
  constexpr auto first = [](Task<std::vector<Value>> asked, std::string key) -> Task<Value> {
    std::vector<Value> replies = co_await asked;
    const std::string_view command[] = {"GET", key};
    if (replies.at(0).is_error()) throw error_of_command(replies[0].as_text(), command);
    co_return std::move(replies[0]);
  };
  std::vector<std::string> keys{value_key};
  return first(fetch_all(std::move(keys), until), std::move(value_key));
}

/// And what time it is.
Task<std::vector<Value>> Wire::fetch_all(std::vector<std::string> value_keys, SteadyTime until) {
  Batch batch;
  for (const auto& key : value_keys) batch.add({"GET", key});
  batch.add({"TIME"});
  auto asked = store_.run(std::move(batch), {.until = std::min(until, patience())});
  std::vector<Value> replies = co_await asked;
  if (replies.size() != value_keys.size() + 1) throw odd_reply(store_, Value::integer(0));
  if (!replies.back().is_error()) {
    const auto& time = items_of(store_, replies.back(), 2);
    const auto seconds = std::clamp<std::int64_t>(time[0].as_integer(), 0, std::int64_t{1} << 40);
    clock_.saw(seconds * 1'000'000 + time[1].as_integer() % 1'000'000, store_.clock().steady());
  }
  replies.pop_back();
  co_return replies;
}

Task<Look> Wire::look(std::string value_key, std::string owner, bool waits, std::string replace) {
  auto asked = store_.run(scripts::cache_look, {value_key, Names::lease_of(value_key)},
                          {owner, fmt::to_string(lease_.count()), waits ? "1" : "0", replace},
                          {.until = patience(), .repeatable = true});
  co_return look_of(co_await asked);
}

Task<std::vector<std::optional<Look>>> Wire::look_all(std::vector<Question> questions) {
  const std::string lease = fmt::to_string(lease_.count());
  Batch batch;
  for (const auto& question : questions) {
    const std::string lease_key = Names::lease_of(question.value_key);
    const std::string_view keys[] = {question.value_key, lease_key};
    const std::string_view words[] = {question.owner, lease, "1", question.replace};
    batch.add(scripts::cache_look, keys, words);
  }
  auto asked = store_.run(std::move(batch), {.until = patience(), .repeatable = true});
  std::vector<Value> replies = co_await asked;
  replies.resize(questions.size());
  std::vector<std::optional<Look>> looks;
  for (auto& reply : replies)
    looks.push_back(reply.is_aggregate() ? std::optional{look_of(std::move(reply))} : std::nullopt);
  co_return looks;
}

Look Wire::look_of(Value reply) {
  (void)items_of(store_, reply, 2);
  auto& parts = reply.as_items();
  saw(parts[0]);
  const std::string& kind = parts[1].as_text();
  Look look;
  if (kind == "lead" && parts.size() == 3) {
    look.kind = Look::Kind::lead;
    look.text = std::move(parts[2].as_text());
  } else if (kind == "busy" && parts.size() == 3) {
    look.left = sane(parts[2]);
  } else if (kind == "value" && parts.size() == 3) {
    look.kind = Look::Kind::value;
    look.text = std::move(parts[2].as_text());
  } else {
    throw odd_reply(store_, reply);
  }
  return look;
}

Task<bool> Wire::store(std::string value_key, std::string owner, NewEntry entry) {
  const auto load_us = std::chrono::duration_cast<std::chrono::microseconds>(entry.load).count();
  const std::string lease_key = Names::lease_of(value_key);
  const std::string fresh = fmt::to_string(entry.fresh.count());
  const std::string kept = fmt::to_string(entry.kept.count());
  const std::string load = fmt::to_string(load_us);
  const std::string_view keys[] = {value_key, lease_key};
  const std::string_view words[] = {
      owner, entry.is_absent ? "a" : "v", fresh, kept, load, channel_, value_key, entry.payload};
  // A load that is lost with its server is no harm: the value is loaded anew.
  auto asked = owner.empty() ? run_to_count(scripts::cache_store, keys, words, {})
                             : store_.run(scripts::cache_store, keys, words, repeatable);
  const Value reply = co_await asked;
  const auto& parts = items_of(store_, reply, 2);
  saw(parts[0]);
  co_return parts[1].as_integer() == 1;
}

Task<bool> Wire::renew(std::string value_key, std::string owner) {
  auto asked =
      store_.run(scripts::cache_renew, {value_key, Names::lease_of(value_key)},
                 {owner, fmt::to_string(lease_.count())}, {.repeatable = true, .unhurried = true});
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

Task<std::string> Wire::owner_of(std::string value_key) {
  auto asked = store_.run({"HGET", Names::lease_of(value_key), "owner"}, {.until = patience()});
  const Value owner = co_await asked;
  co_return owner.is_null() ? std::string{} : owner.as_text();
}

Task<void> Wire::give_back(std::string value_key, std::string owner) {
  auto asked = store_.run(scripts::cache_give_back, {value_key, Names::lease_of(value_key)},
                          {owner, channel_, value_key}, {.until = patience(), .repeatable = true});
  co_await asked;
}

Task<void> Wire::invalidate(std::vector<std::string> value_keys) {
  std::vector<std::array<std::string_view, 2>> keys, words;
  std::vector<std::string> lease_keys;
  for (const auto& key : value_keys) lease_keys.push_back(Names::lease_of(key));
  for (std::size_t i = 0; i < value_keys.size(); ++i) {
    keys.push_back({value_keys[i], lease_keys[i]});
    words.push_back({channel_, value_keys[i]});
  }
  std::vector<ScriptCall> calls;
  for (std::size_t i = 0; i < keys.size(); ++i)
    calls.push_back({scripts::cache_invalidate, keys[i], words[i]});
  auto asked = run_durably(store_, std::span{std::as_const(calls)}, durability_, repeatable);
  const DurableReplies answer = co_await asked;
  if (durability_.replicas > 0 && !answer.copies.are_enough(durability_))
    throw unsynced(value_keys, answer.copies, durability_);
}

Task<Wire::Scanned> Wire::scan(std::string cursor, bool loads) {
  const std::string pattern = names_.pattern(loads);
  auto asked = store_.run({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
  const Value reply = co_await asked;
  const auto& parts = items_of(store_, reply, 2);
  Scanned step{.cursor = parts[0].as_text(), .value_keys = {}};
  for (const auto& key : parts[1].as_items())
    if (auto value_key = names_.value_in(key.as_text(), loads))
      step.value_keys.push_back(std::move(*value_key));
  co_return step;
}

Task<std::chrono::milliseconds> Wire::admit_absent(std::int64_t budget,
                                                   std::chrono::milliseconds ttl) {
  const auto part = static_cast<double>(random_below(1'000'000)) / 1e6;
  auto asked = store_.run(
      scripts::cache_admit_absent, {names_.absent_budget()},
      {fmt::to_string(budget / 2), fmt::to_string(ttl.count() / 2), fmt::format("{:.6f}", part)},
      {.until = patience()});
  const Value reply = co_await asked;
  const auto& parts = items_of(store_, reply, 2);
  saw(parts[0]);
  const auto kept = parts[1].as_integer();
  if (kept > 0) co_return std::chrono::milliseconds{kept};
  co_return -sane(items_of(store_, reply, 3)[2]);
}

Task<void> Wire::invalidate_twice(std::string key, std::chrono::milliseconds after) {
  const std::string planned = names_.second_invalidations();
  const std::string value_key = names_.value_of(key);
  const std::string lease_key = Names::lease_of(value_key);
  const std::string delay = fmt::to_string(after.count());
  const std::string_view plan_keys[] = {planned};
  const std::string_view plan_words[] = {delay, key};
  const std::string_view keys[] = {value_key, lease_key};
  const std::string_view words[] = {channel_, value_key};
  // In this order: what has been invalidated once will be so again.
  auto asked = run_durably(store_,
                           {{scripts::cache_plan_again, plan_keys, plan_words},
                            {scripts::cache_invalidate, keys, words}},
                           durability_, repeatable);
  const DurableReplies answer = co_await asked;
  if (!answer.copies.are_enough(durability_))
    throw unsynced({value_key}, answer.copies, durability_);
}

Task<DueKeys> Wire::due(std::chrono::milliseconds retry) {
  auto asked = store_.run(scripts::cache_due_again, {names_.second_invalidations()},
                          {most_due, fmt::to_string(retry.count())}, {.unhurried = true});
  Value reply = co_await asked;
  (void)items_of(store_, reply, 2);
  auto& parts = reply.as_items();
  saw(parts[0]);
  DueKeys due;
  due.next = std::chrono::milliseconds{parts[1].as_integer()};
  for (std::size_t i = 2; i + 1 < parts.size(); i += 2)
    due.keys.push_back({std::move(parts[i].as_text()), std::move(parts[i + 1].as_text())});
  co_return due;
}

Task<void> Wire::done(DueKeys::Key key) {
  auto asked = store_.run(scripts::cache_done_again, {names_.second_invalidations()},
                          {key.key, key.due}, {.repeatable = true, .unhurried = true});
  co_await asked;
}

}  // namespace sluice::cache
