/// Finds the names of locks: one sweep through the keys beside locks, which tell the kind, then one
/// through all hashes, for locks that have no such keys.
#pragma once

#include <map>

#include "sluice/lock_watch.hpp"

namespace sluice::lock {

class Search {
 public:
  Search(Store& store, const LockWatchOptions& options, LockWatch::OnProgress progress)
      : store_(store), options_(options), progress_(std::move(progress)) {}

  /// Once.
  Task<LockList> run();
  /// What a name is of, as far as anything is there.
  static Task<std::optional<LockKind>> kind_of(Store& store, std::string name);
  /// Empty: there is nothing any more.
  static Task<std::optional<WatchedLock>> read(Store& store, std::string name, LockKind kind);

 private:
  using Kinds = std::map<std::string, LockKind>;

  enum class Sweep { side_keys, hashes };

  Task<void> run(Sweep sweep);
  Batch one_step(const std::string& cursor, Sweep sweep) const;
  Task<Kinds> locks_among(const Value::Items& keys, Sweep sweep) const;
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
