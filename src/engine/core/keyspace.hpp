/// One database: names to objects, each with an optional time of expiry.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/core/recent_hashes.hpp"
#include "engine/types/hash.hpp"
#include "engine/types/list.hpp"
#include "engine/types/set.hpp"
#include "engine/types/sorted_set.hpp"
#include "engine/types/stream.hpp"

namespace sluice::engine {

/// What a key can hold.
using Object =
    std::variant<std::string, std::unique_ptr<Hash>, std::unique_ptr<List>, std::unique_ptr<Set>,
                 std::unique_ptr<SortedSet>, std::unique_ptr<Stream>>;

/// As TYPE answers: "string", "hash", "list", "set", "zset", "stream".
std::string_view type_name(const Object& object) noexcept;
/// As OBJECT ENCODING answers.
std::string_view encoding_of(const Object& object) noexcept;
Object copy_of(const Object& object);
/// Bytes that an object takes, about, without looking at its elements.
std::size_t size_about(const Object& object) noexcept;
struct Entry;
/// As MEMORY USAGE answers: with the texts of so many elements (0: of all), as if all were alike.
std::size_t memory_of(const Entry& entry, std::size_t samples);

/// The value, if it is of type T; null: it is of another.
template <class T>
T* as(Object& object) noexcept {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::get_if<std::string>(&object);
  } else {
    auto* held = std::get_if<std::unique_ptr<T>>(&object);
    return held ? held->get() : nullptr;
  }
}

/// A key with its object, in one piece of memory: the text of the key follows the struct.
struct Entry {
  Entry* next = nullptr;
  std::uint64_t hash;
  std::int64_t expiry_ms = -1;
  std::size_t expiry_place = 0;  ///< in the ExpiryIndex
  std::size_t key_size;
  Object object;

  std::string_view key() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), key_size};
  }
  static Entry* make(std::string_view key, std::uint64_t hash, Object&& object);
  static void destroy(Entry* entry) noexcept;
};

/// Which key ends first: a heap of entries, each of which knows its place in it.
///
/// Renewing a lease moves one entry, so that the heap is never larger than the number of keys with
/// an expiry, and "nothing is due" costs one comparison.
class ExpiryIndex {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  /// The entry that ends first. REQUIRES: not empty.
  Entry* first() const noexcept { return heap_.front().entry; }
  std::int64_t first_ms() const noexcept { return heap_.front().at_ms; }

  /// Enters, moves or (with Keyspace::never) removes `entry`, whose time becomes `at_ms`. O(log n).
  void set(Entry& entry, std::int64_t at_ms);
  /// Moves all times by as much; one that is moved before 1970 or beyond what can be said stays
  /// there. `visit(const Entry&)`: each. O(n).
  template <class Visit>
  void move(std::int64_t by_ms, Visit&& visit) {
    for (auto& item : heap_) {
      if (__builtin_add_overflow(item.at_ms, by_ms, &item.at_ms))
        item.at_ms = std::numeric_limits<std::int64_t>::max();
      item.entry->expiry_ms = item.at_ms = std::max<std::int64_t>(item.at_ms, 0);
      visit(*item.entry);
    }
  }
  void clear() noexcept { heap_.clear(); }
  void swap(ExpiryIndex& other) noexcept { heap_.swap(other.heap_); }

 private:
  struct Item {
    std::int64_t at_ms;
    Entry* entry;
  };
  static constexpr std::size_t children = 4;

  void place(std::size_t i, Item item) noexcept;
  void up(std::size_t i, Item item) noexcept;
  void down(std::size_t i, Item item) noexcept;

  std::vector<Item> heap_;
};

class Keyspace {
 public:
  static constexpr std::int64_t never = -1;

  /// While `keep_expired` is true (a log is loaded) keys live on until their DEL comes.
  /// `soonest_ms` is lowered to each time of expiry that is before it. `undo` is told of each
  /// change while it is not null.
  Keyspace(const bool& keep_expired, std::int64_t& soonest_ms, Undo* const& undo);
  ~Keyspace();

  /// Null: no such key, or it is past its time at `now_ms` (it is deleted then, and reported to
  /// take_expired()). The pointer is good until the next call that adds or removes keys.
  Object* find(std::string_view key, std::int64_t now_ms) {
    Entry* entry = find_entry(key, now_ms);
    return entry ? &entry->object : nullptr;
  }
  Entry* find_entry(std::string_view key, std::int64_t now_ms) {
    Entry* entry = table_.find(key, hash_of_key(key));
    if (entry && entry->expiry_ms != never && now_ms > entry->expiry_ms && !keep_expired_)
      return expire(entry);
    return entry;
  }
  /// Inserts or replaces; the expiry is cleared.
  Object& put(std::string_view key, Object object);
  /// Another object at a key that is there; the expiry stays.
  void replace(Entry& entry, Object&& object);
  /// The object goes to `key` of `target`, with its expiry; what was there is replaced.
  Object& move(Entry& entry, Keyspace& target, std::string_view key);
  bool erase(std::string_view key);
  /// `never` where there is none, or no such key.
  std::int64_t expiry_ms(std::string_view key) const;
  void set_expiry_ms(std::string_view key, std::int64_t at_ms);
  void set_expiry_ms(Entry& entry, std::int64_t at_ms) {
    if (undo_) expect_expiry(entry);
    expiries_.set(entry, at_ms);
    if (at_ms != never && at_ms < soonest_ms_) soonest_ms_ = at_ms;
  }

  /// As ExpiryIndex::move().
  template <class Visit>
  void move_expiries(std::int64_t by_ms, Visit&& visit) {
    expiries_.move(by_ms, visit);
  }

  std::size_t size() const noexcept { return table_.size(); }
  /// How many keys have a time of expiry.
  std::size_t expiring() const noexcept { return expiries_.size(); }
  std::int64_t first_expiry_ms() const noexcept {
    return expiries_.empty() ? never : expiries_.first_ms();
  }
  void clear();
  /// SCAN: calls `visit(const Entry&)` for some keys and gives the next cursor, 0 at the end. Keys
  /// that are there all the time are visited at least once, however the table grows. `visit` must
  /// not add or remove keys; keys that are past their time are visited too.
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit&& visit) const {
    return table_.scan(cursor, [&](const Entry& entry) { visit(entry); });
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    table_.for_each([&](const Entry& entry) { visit(entry); });
  }
  /// REQUIRES: size() > 0.
  const Entry& random(SeededRandom& rng) const { return *table_.random(rng); }

  /// Deletes the key that ends first if it is past its time; it is reported to take_expired().
  /// False: none is due.
  bool expire_first(std::int64_t now_ms);

  /// Keys that were deleted because their time was over, since the last call; each is to be logged
  /// as DEL.
  bool has_expired() const noexcept { return !expired_.empty(); }
  std::vector<std::string> take_expired() { return std::exchange(expired_, {}); }

  /// Since the last call a stream was deleted or replaced, perhaps.
  bool take_lost_stream() noexcept { return std::exchange(lost_stream_, false); }

 private:
  struct Inverse;

  std::uint64_t hash_of_key(std::string_view key) const {
    return undo_ ? recent_hash_of(key) : hash_of(key);  // a script asks for its keys again
  }
  std::uint64_t recent_hash_of(std::string_view key) const;
  Entry* expire(Entry* entry);  ///< gives null
  void expect_expiry(Entry& entry);
  void lose(const Object& object) noexcept {
    if (std::holds_alternative<std::unique_ptr<Stream>>(object)) lost_stream_ = true;
  }

  const bool& keep_expired_;
  std::int64_t& soonest_ms_;
  Undo* const& undo_;
  ChainedTable<Entry> table_;
  mutable std::unique_ptr<RecentHashes> recent_;  // from the first script on
  ExpiryIndex expiries_;
  std::vector<std::string> expired_;
  bool lost_stream_ = false;
};

}  // namespace sluice::engine
