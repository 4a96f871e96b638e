/// All public headers but those of flash sales, which are of the library sluice::sale: sale.hpp,
/// bucketed_sale.hpp and their neighbours.
#pragma once

#include "sluice/bloom_filter.hpp"         // IWYU pragma: export
#include "sluice/cache_guard.hpp"          // IWYU pragma: export
#include "sluice/clock.hpp"                // IWYU pragma: export
#include "sluice/error.hpp"                // IWYU pragma: export
#include "sluice/id.hpp"                   // IWYU pragma: export
#include "sluice/lock.hpp"                 // IWYU pragma: export
#include "sluice/log.hpp"                  // IWYU pragma: export
#include "sluice/metrics.hpp"              // IWYU pragma: export
#include "sluice/number.hpp"               // IWYU pragma: export
#include "sluice/open.hpp"                 // IWYU pragma: export
#include "sluice/shared_bloom_filter.hpp"  // IWYU pragma: export
#include "sluice/store.hpp"                // IWYU pragma: export
#include "sluice/task.hpp"                 // IWYU pragma: export
#include "sluice/token.hpp"                // IWYU pragma: export
#include "sluice/value.hpp"                // IWYU pragma: export
#include "sluice/waiting_room.hpp"         // IWYU pragma: export
#include "sluice/when_all.hpp"             // IWYU pragma: export
