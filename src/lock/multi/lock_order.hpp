/// The order in which a MultiLock waits for its names, and which of them one script takes.
///
/// A waiter holds only names that come before the one it waits for, so that no cycle of waiters can
/// form. All programs that take the same names must use the same order: by server (its address
/// without the password), then by hash slot, then by name. It is the same whether one script takes
/// names of several slots or not.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sluice/multi_lock.hpp"

namespace sluice::lock {

/// Names that one script takes.
struct NameGroup {
  Store* store = nullptr;
  std::vector<std::string> names;   ///< in the order of waiting
  std::vector<std::size_t> places;  ///< of each among the names as given
};

/// `slot_by_slot`: also of Stores that are not sharded.
/// Throws Error (bad_argument) for no name, for more than MultiLock::most_names, and for a name of
/// one Store given twice. O(n log n).
std::vector<NameGroup> in_lock_order(std::span<const MultiName> names, bool slot_by_slot);

}  // namespace sluice::lock
