/// By what the kinds of locks are known on a server.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/lock_watch.hpp"

namespace sluice::lock {

/// A lock that a key speaks of, which lies beside the lock's own.
struct Trace {
  std::string name;
  LockKind kind;
};

/// What a search for the keys beside locks matches.
inline constexpr std::string_view side_keys = "sluice_*";

/// Empty: not a key of ours beside a lock.
std::optional<Trace> trace_in(std::string_view key);

/// The keys to look for beside the lock of that name; trace_in() of each is that name.
std::vector<std::string> side_keys_of(std::string_view name);

/// What a hash says of itself: the reply to HMGET with `hash_fields`, and its number of fields.
inline constexpr std::string_view hash_fields[] = {"sluice:request", "mode"};
/// Empty: no lock. `foreign`: if its one field is an owner, see is_owner().
std::optional<LockKind> kind_of_hash(const Value& fields, std::int64_t size);
/// Whether that is how an owner is written: UUID:NUMBER.
bool is_owner(std::string_view field);

/// Reads a lock that is known to be of that kind.
Task<LockInfo> read_lock(Store& store, LockKind kind, std::string name);

}  // namespace sluice::lock
