#include "lock/multi/lock_order.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/hash_slot.hpp"
#include "lock/hold/steps.hpp"

namespace sluice::lock {
namespace {

/// What a name is sorted by. Stores of one address (two in memory, say) are told apart by their
/// place in this process: no other process knows them.
struct Rank {
  std::string server;
  const Store* store;
  std::uint16_t slot;
  std::string_view name;

  friend auto operator<=>(const Rank&, const Rank&) = default;
};

std::vector<Rank> ranks_of(std::span<const MultiName> names) {
  std::vector<Rank> ranks;
  ranks.reserve(names.size());
  for (const auto& [store, name] : names)
    ranks.push_back({store.describe(), &store, hash_slot(name), name});
  return ranks;
}

}  // namespace

std::vector<NameGroup> in_lock_order(std::span<const MultiName> names, bool slot_by_slot) {
  if (names.empty() || names.size() > MultiLock::most_names)
    throw Error{Errc::bad_argument, "a lock of many names has from 1 to " +
                                        std::to_string(MultiLock::most_names) + " of them, not " +
                                        std::to_string(names.size())};
  const std::vector<Rank> ranks = ranks_of(names);
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) -> const Rank& { return ranks[i]; });

  std::vector<NameGroup> groups;
  const Rank* last = nullptr;
  for (const std::size_t place : order) {
    const Rank& rank = ranks[place];
    if (last && *last == rank)
      throw Error{Errc::bad_argument,
                  "a lock of many names was given " + quoted(names[place].name) + " twice"};
    const bool by_slot = slot_by_slot || rank.store->is_sharded();
    if (!last || last->store != rank.store || (by_slot && last->slot != rank.slot))
      groups.push_back({.store = &names[place].store, .names = {}, .places = {}});
    groups.back().names.push_back(names[place].name);
    groups.back().places.push_back(place);
    last = &rank;
  }
  return groups;
}

}  // namespace sluice::lock
