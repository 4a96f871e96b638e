/// A Mutex as operators see it, and the holder of any lock hash.
#pragma once

#include <vector>

#include "lock/mutex/names.hpp"
#include "sluice/held.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

/// What to ask, first of all, for the hold in a lock hash.
void ask_for_hold(Batch& batch, const Names& names);
/// What the answers say; the waiters are left to the caller. Throws Error if any of `replies` is
/// one.
LockInfo hold_info(const std::vector<Value>& replies);

Task<LockInfo> info_of(Store& store, const Names& names);

}  // namespace sluice::lock
