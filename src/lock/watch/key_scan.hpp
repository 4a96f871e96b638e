/// Finds the names of locks among the keys of a server, and reads them.
///
/// KeyScan goes through all keys twice: first through the keys beside locks, which tell the kind of
/// lock, then through all hashes, for locks that have no such keys.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/lock_watch.hpp"

namespace sluice::lock {

// --- by what a lock of each kind is known (lock_kinds.cpp) ---

/// A lock of which a key beside it tells.
struct KnownLock {
  std::string name;
  LockKind kind;
};

/// A pattern that matches every key beside a lock.
inline constexpr std::string_view side_key_pattern = "sluice_*";
/// Empty: not one of our keys beside a lock.
std::optional<KnownLock> lock_beside(std::string_view key);
/// The keys that may lie beside the lock of that name.
std::vector<std::string> side_keys_of(std::string_view name);

/// The fields of a hash that kind_of_hash() wants to see.
inline constexpr std::string_view hash_fields[] = {"sluice:request", "mode"};
/// `fields`: the reply to HMGET with `hash_fields`. `size`: the number of fields. Empty: no lock.
/// `foreign`: it is one if its one field is an owner, see is_owner().
std::optional<LockKind> kind_of_hash(const Value& fields, std::int64_t size);
/// Whether a field names an owner as Redisson writes it: UUID:NUMBER.
bool is_owner(std::string_view field);

/// Empty: nobody holds the lock or waits for it any more.
Task<std::optional<WatchedLock>> read_lock(Store& store, std::string name, LockKind kind);

// --- the search for all of them (key_scan.cpp) ---

/// Empty: there is no lock of that name.
Task<std::optional<LockKind>> kind_of(Store& store, std::string name);

class KeyScan {
 public:
  KeyScan(Store& store, const LockWatchOptions& options, LockWatch::OnProgress progress)
      : store_(store), options_(options), progress_(std::move(progress)) {}

  /// Once.
  Task<LockList> run();

 private:
  using Kinds = std::map<std::string, LockKind>;

  enum class Pass { side_keys, hashes };

  Task<void> run(Pass pass);
  Task<Value> one_step(const std::string& cursor, Pass pass) const;
  Task<Kinds> locks_among(const Value::Items& keys, Pass pass) const;
  void report(std::int64_t keys);
  Task<void> read_all(Kinds kinds);
  bool is_full() const noexcept { return found_.size() >= options_.most; }
  bool fits(const LockInfo& info) const;

  Store& store_;
  const LockWatchOptions& options_;
  const LockWatch::OnProgress progress_;
  std::map<std::string, WatchedLock> found_;
  LockSearch state_;
  bool complete_ = true;
};

}  // namespace sluice::lock
