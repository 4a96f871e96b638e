#include "lock/watch/key_scan.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "sluice/lock_info.hpp"
#include "sluice/when_all.hpp"

namespace sluice::lock {
namespace {

using Kinds = std::map<std::string, LockKind>;

/// How many locks are read at a time.
constexpr std::size_t read_at_once = 100;

bool matches(const std::string& pattern, const std::string& name) {
  return pattern == "*" || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// Those of the hashes that are locks.
Task<Kinds> kinds_of_hashes(Store& store, std::vector<std::string> names) {
  Batch batch;
  for (const auto& name : names)
    batch.add({"HMGET", name, hash_fields[0], hash_fields[1]}).add({"HLEN", name});
  const std::vector<Value> replies = co_await store.run(std::move(batch));
  Kinds kinds;
  Batch names_of_fields;
  std::vector<std::string> one_field;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Value& fields = replies.at(2 * i);
    const Value& size = replies.at(2 * i + 1);
    if (fields.is_error() || size.is_error()) continue;  // it became something else
    const auto kind = kind_of_hash(fields, size.as_integer());
    if (kind == LockKind::foreign) {
      names_of_fields.add({"HKEYS", names[i]});
      one_field.push_back(names[i]);
    } else if (kind) {
      kinds.emplace(names[i], *kind);
    }
  }
  if (one_field.empty()) co_return kinds;
  const std::vector<Value> fields = co_await store.run(std::move(names_of_fields));
  for (std::size_t i = 0; i < one_field.size(); ++i) {
    if (fields.at(i).is_error() || fields.at(i).as_items().size() != 1) continue;
    if (is_owner(fields[i].as_items()[0].as_text())) kinds.emplace(one_field[i], LockKind::foreign);
  }
  co_return kinds;
}

}  // namespace

Task<std::optional<LockKind>> kind_of(Store& store, std::string name) {
  const std::vector<std::string> keys = side_keys_of(name);
  Batch batch;
  batch.add({"TYPE", name});
  for (const auto& key : keys) batch.add({"EXISTS", key});
  const std::vector<Value> replies = co_await store.run(std::move(batch));
  for (const Value& reply : replies)
    if (reply.is_error()) throw error_of_reply(reply.as_text());
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (replies.at(i + 1).as_integer() == 1) co_return lock_beside(keys[i])->kind;
  if (replies.at(0).as_text() != "hash") co_return std::nullopt;
  auto asked_hash = kinds_of_hashes(store, {name});
  const Kinds kinds = co_await asked_hash;
  if (kinds.empty()) co_return std::nullopt;
  co_return kinds.begin()->second;
}

bool KeyScan::fits(const LockInfo& info) const {
  const auto is_there = [this](const auto& person) { return person.data.host == options_.host; };
  return options_.host.empty() || std::ranges::any_of(info.holders, is_there) ||
         std::ranges::any_of(info.waiters, is_there);
}

Task<void> KeyScan::read_all(Kinds kinds) {
  for (auto next = kinds.begin(); next != kinds.end();) {
    std::vector<Task<std::optional<WatchedLock>>> reads;
    for (; next != kinds.end() && reads.size() < read_at_once; ++next)
      reads.push_back(read_lock(store_, next->first, next->second));
    std::vector<std::optional<WatchedLock>> locks = co_await when_all(std::move(reads));
    for (auto& lock : locks) {
      if (!lock || !fits(lock->info)) continue;
      if (is_full()) complete_ = false;
      if (!complete_) co_return;
      found_.emplace(lock->name, *std::move(lock));
    }
  }
}

/// The locks among the keys of one step that have not been found yet. A lock may be called as a key
/// beside another is.
Task<Kinds> KeyScan::locks_among(const Value::Items& keys, Pass pass) const {
  Kinds kinds;
  std::vector<std::string> hashes;
  for (const Value& key : keys) {
    const auto known = lock_beside(key.as_text());
    if (pass == Pass::hashes && !found_.contains(key.as_text())) hashes.push_back(key.as_text());
    if (pass == Pass::side_keys && known && !found_.contains(known->name) &&
        matches(options_.pattern, known->name))
      kinds.emplace(known->name, known->kind);
  }
  if (hashes.empty()) co_return kinds;
  kinds = co_await kinds_of_hashes(store_, std::move(hashes));
  std::erase_if(kinds, [](const auto& lock) {
    return lock.second == LockKind::foreign && lock_beside(lock.first);
  });
  co_return kinds;
}

Task<Value> KeyScan::one_step(const std::string& cursor, Pass pass) const {
  const std::string step = std::to_string(options_.step);
  if (pass == Pass::hashes)
    return store_.run({"SCAN", cursor, "MATCH", options_.pattern, "COUNT", step, "TYPE", "hash"});
  return store_.run({"SCAN", cursor, "MATCH", side_key_pattern, "COUNT", step});
}

void KeyScan::report(std::int64_t keys) {
  state_.of = 2 * static_cast<std::uint64_t>(keys);
  state_.looked_at = std::min<std::uint64_t>(state_.looked_at + options_.step, state_.of);
  state_.found = found_.size();
  if (progress_) progress_(state_);
}

Task<void> KeyScan::run(Pass pass) {
  auto counting = store_.run({"DBSIZE"});
  const Value keys = co_await counting;
  std::string cursor = "0";
  do {
    auto scanning = one_step(cursor, pass);
    const Value scanned = co_await scanning;
    cursor = scanned.as_items().at(0).as_text();
    Kinds kinds = co_await locks_among(scanned.as_items().at(1).as_items(), pass);
    co_await read_all(std::move(kinds));
    report(keys.as_integer());
  } while (cursor != "0" && complete_);
}

Task<LockList> KeyScan::run() {
  for (const Pass pass : {Pass::side_keys, Pass::hashes}) {
    co_await run(pass);
  }
  LockList list{.locks = {}, .complete = complete_};
  for (auto& [name, lock] : found_) list.locks.push_back(std::move(lock));
  co_return list;
}

}  // namespace sluice::lock
