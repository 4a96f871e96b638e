/// A SharedMutex as operators see it.
#pragma once

#include "lock/shared/names.hpp"
#include "sluice/held.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

Task<LockInfo> shared_info(Store& store, const SharedNames& names);

}  // namespace sluice::lock
