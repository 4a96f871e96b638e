/// A semaphore as operators see it.
#pragma once

#include "lock/semaphore/wire.hpp"
#include "sluice/semaphore.hpp"

namespace sluice::lock {

Task<SemaphoreInfo> info_of(Store& store, const PoolWire& wire);

}  // namespace sluice::lock
