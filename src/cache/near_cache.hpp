/// Values of a cache that lie in this process, so that a hit asks no server.
///
/// Guarantee: find() gives no value that was read before the last invalidate() of its key, flush()
///   or open() here, whichever of the two comes first: a Fill knows since when its value is read,
///   and the cache when a key was last invalidated. Nothing is given for longer than `max_ttl`
///   after its read began. Values, as their callers state their sizes, and keys take no more than
///   `bytes`.
/// Not guaranteed: that each read is kept: what was invalidated at about the same time, and what
///   is larger than a shard's share, is not.
/// Threads: any. Values are destroyed outside of the locks, by the thread that makes them go. In a
///   child of fork(), which no change is told to, it is closed and empty.
/// Cost: a hit is a hash, the mutex of one shard and a copy of a shared_ptr; flush() does not look
///   at the values: what it has ended is freed by later fills.
///
/// Which value goes when the room is used up is decided by SIEVE (Y. Zhang, J. Yang, Y. Yue,
/// Y. Vigfusson, K. V. Rashmi: "SIEVE is Simpler than LRU", NSDI 2024): values stand in the order
/// of their coming, and a hit only marks its value. A hand goes from the oldest to the newest: it
/// takes the mark of a marked value away, and evicts one without. So keys that never come again
/// push out each other, and a hit moves nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/process.hpp"
#include "base/sip_hash.hpp"
#include "sluice/clock.hpp"

namespace sluice::cache {

struct NearCacheOptions {
  /// Of memory for values and keys. More: more hits. 0: nothing is kept.
  std::size_t bytes = std::size_t{64} << 20;
  /// How long a value may be given after it was read, whatever its own time is: the bound on what a
  /// lost message can do. Less: more reads of the store.
  std::chrono::milliseconds max_ttl{60'000};
};

struct NearValue {
  std::shared_ptr<const void> object;  ///< null: known to be absent
};

class NearCache {
 public:
  explicit NearCache(const NearCacheOptions& options = {});
  NearCache(const NearCache&) = delete;
  NearCache& operator=(const NearCache&) = delete;
  ~NearCache();

  /// Empty: it is not here, its time is over, or the cache is closed.
  std::optional<NearValue> find(std::string_view key, SteadyTime now);
  /// The same whether its time is over or not, and also of a closed cache: for a caller who would
  /// rather have an old value than none. What was invalidated or flushed is not given.
  std::optional<NearValue> find_stale(std::string_view key);

  /// What a value that is about to be read from the store will be kept by.
  class Fill {
    friend class NearCache;
    std::uint64_t hash_;
    std::uint64_t version_;
    SteadyTime since_;
  };
  /// Before the read is sent.
  Fill begin_fill(std::string_view key, SteadyTime now) const;
  /// When its reply is there: keeps `value`, of about so many bytes, until `until`. False: it was
  /// invalidated meanwhile, the cache is closed, it is too large, or memory is short. REQUIRES:
  /// `key` as in begin_fill().
  bool fill(const Fill& fill, std::string_view key, NearValue value, std::size_t bytes,
            SteadyTime until) noexcept;

  /// The key has changed, or will be found changed by reads that begin now.
  void invalidate(std::string_view key);
  /// All keys.
  void flush();
  /// A new cache is closed. Opening flushes it first.
  void open();
  void close() noexcept { is_open_.store(false, std::memory_order_release); }
  bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire) && is_ours(); }

  struct Stats {
    std::size_t entries = 0;  ///< with what was flushed and is not freed yet
    std::size_t bytes = 0;
    std::uint64_t evictions = 0;
  };
  /// Asks each shard.
  Stats stats() const;

 private:
  struct Entry;
  class Graveyard;
  class Shard;

  bool is_ours() const noexcept { return forks_ == fork_count(); }
  Shard& shard_of(std::uint64_t hash) const noexcept;
  std::optional<NearValue> find(std::string_view key, std::optional<SteadyTime> now);

  const SipKey key_;
  const std::chrono::milliseconds max_ttl_;
  const std::size_t count_;  // of shards, a power of two
  const std::size_t share_;  // of each shard, in bytes
  const std::unique_ptr<Shard[]> shards_;
  const unsigned forks_ = fork_count();
  std::atomic<bool> is_open_{false};
};

}  // namespace sluice::cache
