/// A Mutex as operators see it.
#pragma once

#include "lock/mutex/names.hpp"
#include "sluice/held.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

Task<LockInfo> info_of(Store& store, const Names& names);

}  // namespace sluice::lock
