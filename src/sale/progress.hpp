/// What several workers did, one beside or after another.
#pragma once

#include "sluice/order_worker.hpp"

namespace sluice::sale {

inline void add(WorkerProgress& sum, const WorkerProgress& more) {
  sum.inserted += more.inserted;
  sum.repeated += more.repeated;
  sum.claimed += more.claimed;
  sum.dead += more.dead;
  sum.recoveries += more.recoveries;
  sum.failures += more.failures;
  if (!more.last_failure.empty()) sum.last_failure = more.last_failure;
}

}  // namespace sluice::sale
