/// In which order the names of a MultiLock are waited for, and which of them one script takes.
///
/// Whoever waits holds only what comes before in this order, so that no circle of waiters can
/// close. It must be the same for all programs that take the same names: by server (its address
/// without the password), then by hash slot, then by name. Whether names of several slots are taken
/// by one script changes nothing in it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sluice/multi_lock.hpp"

namespace sluice::lock {

/// Names that one script takes.
struct Part {
  Store* store = nullptr;
  std::vector<std::string> names;   ///< in the order of waiting
  std::vector<std::size_t> places;  ///< of each among the names as given
};

/// Throws Error (bad_argument) for no name, for more than MultiLock::most_names, and for a name of
/// one Store given twice. O(n log n).
std::vector<Part> in_order(std::span<const MultiName> names, bool slot_by_slot);

}  // namespace sluice::lock
