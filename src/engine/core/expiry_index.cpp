#include "engine/core/expiry_index.hpp"

#include <algorithm>

#include "engine/core/keyspace.hpp"

namespace sluice::engine {

void ExpiryIndex::set(Entry& entry, std::int64_t at_ms) {
  const bool known = entry.expiry_ms != Keyspace::never;
  entry.expiry_ms = at_ms;
  if (at_ms == Keyspace::never) {
    if (!known) return;
    const auto hole = entry.expiry_place;
    const auto last = heap_.back();
    heap_.pop_back();
    if (hole == heap_.size()) return;
    up(hole, last);
    down(last.entry->expiry_place, last);
    return;
  }
  if (!known) {
    heap_.push_back({});
    return up(heap_.size() - 1, {at_ms, &entry});
  }
  up(entry.expiry_place, {at_ms, &entry});
  down(entry.expiry_place, {at_ms, &entry});
}

void ExpiryIndex::place(std::size_t i, Item item) noexcept {
  heap_[i] = item;
  item.entry->expiry_place = i;
}

void ExpiryIndex::up(std::size_t i, Item item) noexcept {
  while (i > 0) {
    const auto parent = (i - 1) / children;
    if (heap_[parent].at_ms <= item.at_ms) break;
    place(i, heap_[parent]);
    i = parent;
  }
  place(i, item);
}

void ExpiryIndex::down(std::size_t i, Item item) noexcept {
  for (;;) {
    const auto begin = i * children + 1;
    if (begin >= heap_.size()) break;
    auto least = begin;
    for (auto child = begin + 1; child < std::min(begin + children, heap_.size()); ++child)
      if (heap_[child].at_ms < heap_[least].at_ms) least = child;
    if (item.at_ms <= heap_[least].at_ms) break;
    place(i, heap_[least]);
    i = least;
  }
  place(i, item);
}

}  // namespace sluice::engine
