/// Locks and synchronizers that are shared by every process that names them.
#pragma once

#include "sluice/fencing.hpp"       // IWYU pragma: export
#include "sluice/held.hpp"          // IWYU pragma: export
#include "sluice/latch.hpp"         // IWYU pragma: export
#include "sluice/mutex.hpp"         // IWYU pragma: export
#include "sluice/rate_limiter.hpp"  // IWYU pragma: export
