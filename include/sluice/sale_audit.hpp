/// Proves a sale from what lies in the store and in the database, to the last unit; not from
/// counters of programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/order_store.hpp"
#include "sluice/sale.hpp"

namespace sluice {

struct AuditCheck {
  std::string name;  ///< "sold_plus_left_is_stock"
  bool ok;
  std::int64_t figure;
  std::int64_t expected;
  std::string detail;  ///< what is wrong, with examples; or what was counted
};

struct SaleAudit {
  std::vector<AuditCheck> checks;
  std::int64_t admitted = 0;     ///< orders in the store's record of requests
  std::int64_t in_database = 0;  ///< orders
  std::int64_t on_the_way = 0;   ///< orders in the stream that are not in the database
  std::int64_t dead = 0;         ///< dead letters

  bool ok() const noexcept {
    for (const auto& check : checks)
      if (!check.ok) return false;
    return true;
  }
};

/// Compares the store with the database: every unit, every order, every number. Reads in pages;
/// keeps 8 bytes an order in memory. Blocks the thread, for about a second a million orders. Exact
/// when nobody buys meanwhile. While orders are admitted the figures of the store and of the
/// database are from different instants and may differ by what came in between; workers may run.
/// Throws what the store and the database throw. The OrderStore is the audit's alone meanwhile.
SaleAudit audit(Store& store, const Sale& sale, OrderStore& orders);

}  // namespace sluice
