/// A NearCache that a Store keeps right: what changes there goes here.
///
/// Guarantee: while the Store tells of changes, a value that has changed there is given here no
///   longer than its message takes, some 100 µs. When the connection is lost the cache is closed
///   as soon as that is noticed, and opened, empty, when changes are told again. A value that was
///   read before a change is not kept, though its reply comes after the message (see NearCache).
/// Not guaranteed: that a lost connection is noticed at once. A server or a network that only falls
///   silent is noticed after `idle` and `command_timeout` (33 s by default); until then values may
///   be old, but for no longer than their `max_ttl`.
/// Threads: any. The Store must live longer.
/// In Redis: CLIENT TRACKING ON BCAST PREFIX, on the connection of the Store that hears its
///   channels. A change costs the server one message for each process, none when nobody tracks.
#pragma once

#include <string>

#include "cache/near_cache.hpp"
#include "sluice/store.hpp"

namespace sluice::cache {

class TrackedCache {
 public:
  /// `prefix`: of all keys that it will be given. Where the Store cannot tell, the cache stays
  /// closed, and the log says so once for each reason.
  TrackedCache(Store& store, std::string prefix, const NearCacheOptions& options = {});

  NearCache& cache() noexcept { return cache_; }

 private:
  void take(const Message& message);
  void close(const std::string& why);

  const std::string store_;
  const std::string prefix_;
  std::string last_reason_;  // of being closed; the handler's alone
  NearCache cache_;
  Listener listener_;  // the first to end
};

}  // namespace sluice::cache
