#include "cache/near_cache.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace sluice::cache {
namespace {

constexpr std::size_t most_shards = 64;
constexpr std::size_t smallest_share = 256 << 10;

/// What an entry takes besides itself: the heap's word and its place in the buckets.
constexpr std::size_t overhead = 32;

/// Of what was flushed so many are freed by each fill.
constexpr int freed_at_once = 4;

std::size_t shards_for(std::size_t bytes) {
  return std::clamp<std::size_t>(std::bit_floor(bytes / smallest_share), 1, most_shards);
}

}  // namespace

/// In one piece of memory with its key, whose text follows the struct.
struct NearCache::Entry {
  Entry* next = nullptr;   ///< in its bucket, or in a Graveyard
  Entry* older = nullptr;  ///< in the order of their coming
  Entry* newer = nullptr;
  std::uint64_t hash;
  std::uint64_t version;  ///< of its shard, when its read began
  SteadyTime until;
  NearValue value;
  std::size_t cost;
  std::size_t key_size;
  bool is_marked = false;

  std::string_view key() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), key_size};
  }
  static Entry* make(std::string_view key, Entry&& what) {
    void* memory = ::operator new(sizeof(Entry) + key.size());
    auto* const entry = new (memory) Entry{std::move(what)};
    std::memcpy(static_cast<void*>(entry + 1), key.data(), key.size());
    return entry;
  }
  static void destroy(Entry* entry) noexcept {
    entry->~Entry();
    ::operator delete(entry);
  }
};

/// What was taken out of a shard: freed when its mutex is let go, since the end of a value may be
/// long, or use this cache.
class NearCache::Graveyard {
 public:
  Graveyard() = default;
  Graveyard(const Graveyard&) = delete;
  Graveyard& operator=(const Graveyard&) = delete;
  ~Graveyard() {
    while (first_) Entry::destroy(std::exchange(first_, first_->next));
  }
  void take(Entry& entry) noexcept { entry.next = std::exchange(first_, &entry); }

 private:
  Entry* first_ = nullptr;
};

/// REQUIRES of all but version(): its mutex is held.
class alignas(64) NearCache::Shard {
 public:
  ~Shard() {
    Graveyard graveyard;
    while (oldest_) remove(*oldest_, graveyard);
  }

  std::mutex& mutex() noexcept { return mutex_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return bytes_; }
  std::uint64_t evictions() const noexcept { return evictions_; }

  /// Rises with each invalidation.
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
  /// Whether what was read since `version` may be kept. Keys share places: now and then a change of
  /// another key says no.
  bool is_good(std::uint64_t hash, std::uint64_t version) const noexcept {
    return std::max(changed_[place_of(hash)], flushed_) <= version;
  }

  Entry* find(std::string_view key, std::uint64_t hash) const noexcept {
    if (size_ == 0) return nullptr;
    for (Entry* entry = bucket(hash); entry; entry = entry->next)
      if (entry->hash == hash && entry->key() == key)
        return entry->version < flushed_ ? nullptr : entry;
    return nullptr;
  }

  /// For a value of this key, of which any other goes. REQUIRES: cost <= share.
  void make_room(std::string_view key, std::uint64_t hash, std::size_t cost, std::size_t share,
                 Graveyard& graveyard) {
    if (size_ >= buckets_.size()) grow();
    for (Entry* old = bucket(hash); old; old = old->next)
      if (old->hash == hash && old->key() == key) {
        remove(*old, graveyard);
        break;
      }
    for (int i = 0; i < freed_at_once && oldest_ && oldest_->version < flushed_; ++i)
      remove(*oldest_, graveyard);
    for (; bytes_ + cost > share; ++evictions_) remove(victim(), graveyard);
  }
  /// REQUIRES: make_room() for it.
  void insert(Entry& entry) noexcept {
    entry.next = std::exchange(bucket(entry.hash), &entry);
    entry.older = std::exchange(newest_, &entry);
    (entry.older ? entry.older->newer : oldest_) = &entry;
    ++size_;
    bytes_ += entry.cost;
  }
  void invalidate(std::string_view key, std::uint64_t hash, Graveyard& graveyard) noexcept {
    changed_[place_of(hash)] = next_version();
    if (Entry* const entry = find(key, hash)) remove(*entry, graveyard);
  }
  void flush() noexcept { flushed_ = next_version(); }

 private:
  static constexpr std::size_t places = 64;
  static std::size_t place_of(std::uint64_t hash) noexcept { return hash >> 58; }

  Entry*& bucket(std::uint64_t hash) noexcept { return buckets_[hash & (buckets_.size() - 1)]; }
  Entry* bucket(std::uint64_t hash) const noexcept {
    return buckets_[hash & (buckets_.size() - 1)];
  }
  std::uint64_t next_version() noexcept {
    return version_.fetch_add(1, std::memory_order_acq_rel) + 1;
  }

  /// Where the hand of SIEVE stops. REQUIRES: not empty.
  Entry& victim() noexcept {
    Entry* at = hand_ ? hand_ : oldest_;
    while (at->is_marked && at->version >= flushed_) {
      at->is_marked = false;
      at = at->newer ? at->newer : oldest_;
    }
    hand_ = at;
    return *at;
  }

  void remove(Entry& entry, Graveyard& graveyard) noexcept {
    Entry** link = &bucket(entry.hash);
    while (*link != &entry) link = &(*link)->next;
    *link = entry.next;
    if (hand_ == &entry) hand_ = entry.newer;
    (entry.older ? entry.older->newer : oldest_) = entry.newer;
    (entry.newer ? entry.newer->older : newest_) = entry.older;
    --size_;
    bytes_ -= entry.cost;
    graveyard.take(entry);
  }

  void grow() {
    std::vector<Entry*> larger(std::max<std::size_t>(16, buckets_.size() * 2));
    buckets_.swap(larger);
    for (Entry* entry = oldest_; entry; entry = entry->newer)
      entry->next = std::exchange(bucket(entry->hash), entry);
  }

  std::mutex mutex_;
  std::vector<Entry*> buckets_;  // as many as a power of two
  Entry* oldest_ = nullptr;
  Entry* newest_ = nullptr;
  Entry* hand_ = nullptr;  // null: at the oldest
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t evictions_ = 0;
  std::atomic<std::uint64_t> version_{0};
  std::uint64_t flushed_ = 0;                    // the version of the last flush
  std::array<std::uint64_t, places> changed_{};  // and of the last change of a key of each place
};

NearCache::NearCache(const NearCacheOptions& options)
    : key_(random_128()),
      max_ttl_(options.max_ttl),
      count_(shards_for(options.bytes)),
      share_(options.bytes / count_),
      shards_(std::make_unique<Shard[]>(count_)) {}

NearCache::~NearCache() = default;

NearCache::Shard& NearCache::shard_of(std::uint64_t hash) const noexcept {
  return shards_[(hash >> 32) & (count_ - 1)];
}

std::optional<NearValue> NearCache::find(std::string_view key, SteadyTime now) {
  if (!is_open()) return std::nullopt;
  return find(key, std::optional{now});
}

std::optional<NearValue> NearCache::find_stale(std::string_view key) {
  if (!is_ours()) return std::nullopt;  // a thread of the parent may have a mutex for ever
  return find(key, std::nullopt);
}

std::optional<NearValue> NearCache::find(std::string_view key, std::optional<SteadyTime> now) {
  const auto hash = SipHash::of(key_, key);
  Shard& shard = shard_of(hash);
  const std::lock_guard lock{shard.mutex()};
  Entry* const entry = shard.find(key, hash);
  if (!entry || (now && *now >= entry->until)) return std::nullopt;
  entry->is_marked = true;
  return entry->value;
}

NearCache::Fill NearCache::begin_fill(std::string_view key, SteadyTime now) const {
  Fill fill;
  fill.hash_ = SipHash::of(key_, key);
  fill.version_ = shard_of(fill.hash_).version();
  fill.since_ = now;
  return fill;
}

bool NearCache::fill(const Fill& fill, std::string_view key, NearValue value, std::size_t bytes,
                     SteadyTime until) noexcept try {
  const auto own = sizeof(Entry) + overhead + key.size();
  if (bytes > share_ || own > share_ - bytes || !is_open()) return false;
  Graveyard graveyard;
  Shard& shard = shard_of(fill.hash_);
  const std::lock_guard lock{shard.mutex()};
  if (!shard.is_good(fill.hash_, fill.version_)) return false;
  shard.make_room(key, fill.hash_, own + bytes, share_, graveyard);
  shard.insert(*Entry::make(key, {.hash = fill.hash_,
                                  .version = fill.version_,
                                  .until = std::min(until, Clock::add(fill.since_, max_ttl_)),
                                  .value = std::move(value),
                                  .cost = own + bytes,
                                  .key_size = key.size()}));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void NearCache::invalidate(std::string_view key) {
  if (!is_ours()) return;
  const auto hash = SipHash::of(key_, key);
  Graveyard graveyard;
  Shard& shard = shard_of(hash);
  const std::lock_guard lock{shard.mutex()};
  shard.invalidate(key, hash, graveyard);
}

void NearCache::flush() {
  if (!is_ours()) return;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::lock_guard lock{shards_[i].mutex()};
    shards_[i].flush();
  }
}

void NearCache::open() {
  flush();
  is_open_.store(true, std::memory_order_release);
}

NearCache::Stats NearCache::stats() const {
  Stats all;
  if (!is_ours()) return all;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::lock_guard lock{shards_[i].mutex()};
    all.entries += shards_[i].size();
    all.bytes += shards_[i].bytes();
    all.evictions += shards_[i].evictions();
  }
  return all;
}

}  // namespace sluice::cache
