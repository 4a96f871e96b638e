/// Locks and synchronizers that are shared by every process that names them.
#pragma once

#include "sluice/exclusive_lock.hpp"    // IWYU pragma: export
#include "sluice/fair_mutex.hpp"        // IWYU pragma: export
#include "sluice/fencing.hpp"           // IWYU pragma: export
#include "sluice/held.hpp"              // IWYU pragma: export
#include "sluice/latch.hpp"             // IWYU pragma: export
#include "sluice/lock_info.hpp"         // IWYU pragma: export
#include "sluice/lock_watch.hpp"        // IWYU pragma: export
#include "sluice/multi_lock.hpp"        // IWYU pragma: export
#include "sluice/mutex.hpp"             // IWYU pragma: export
#include "sluice/permit_semaphore.hpp"  // IWYU pragma: export
#include "sluice/quorum_lock.hpp"       // IWYU pragma: export
#include "sluice/rate_limiter.hpp"      // IWYU pragma: export
#include "sluice/semaphore.hpp"         // IWYU pragma: export
#include "sluice/shared_mutex.hpp"      // IWYU pragma: export
