/// Proves a sale from what lies in the store and in the database, to the last unit; not from counters of programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/order_store.hpp"
#include "sluice/sale.hpp"

namespace sluice {

struct Check {
  std::string name;  ///< "sold_plus_left_is_stock"
  bool ok;
  std::int64_t figure;
  std::int64_t expected;
  std::string detail;  ///< what is wrong, with examples; or what was counted
};

/// Compares the store with the database: every unit, every order, every number. Reads in pages; keeps 8 bytes an
/// order in memory. The database's part blocks the thread.
/// Exact when nobody buys meanwhile. While orders are admitted the figures of the store and of the database are from
/// different instants and may differ by what came in between; workers may run.
/// Throws what the store and the database throw. REQUIRES: both arguments live until the Task has ended, and nobody else
/// uses this OrderStore meanwhile.
Task<std::vector<Check>> audit(const Sale& sale, OrderStore& orders);

}  // namespace sluice
