/// Which key ends first: a heap of entries, each of which knows its place in it.
///
/// Renewing a lease moves one entry, so that the heap is never larger than the number of keys with
/// an expiry, and "nothing is due" costs one comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::engine {

struct Entry;

class ExpiryIndex {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  /// The entry that ends first. REQUIRES: not empty.
  Entry* first() const noexcept { return heap_.front().entry; }
  std::int64_t first_ms() const noexcept { return heap_.front().at_ms; }

  /// Enters, moves or (with Keyspace::never) removes `entry`, whose time becomes `at_ms`. O(log n).
  void set(Entry& entry, std::int64_t at_ms);
  void clear() noexcept { heap_.clear(); }

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

}  // namespace sluice::engine
