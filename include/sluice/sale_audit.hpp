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

/// One thing that the store has otherwise than the database, or than another part of the store.
struct AuditDifference {
  std::string check;      ///< the name of its check
  std::string where;      ///< "order MT202601020003, id 268853512921088003, buyer '42'"
  std::string what;       ///< "units"
  std::string in_store;   ///< its value in the store's record; empty: there is none
  std::string elsewhere;  ///< in the database, or in the stream
};
/// "order ...: units is 2 in the store and 3 elsewhere".
std::string to_string(const AuditDifference& difference);

struct SaleAudit {
  std::vector<AuditCheck> checks;
  std::vector<AuditDifference> differences;  ///< the first of them; `checks` has the counts
  std::vector<std::string> unknown;          ///< what nobody can tell from store and database
  std::int64_t admitted = 0;                 ///< orders that the sale has counted
  std::int64_t in_database = 0;              ///< orders
  std::int64_t on_the_way = 0;               ///< orders in the stream that are not in the database
  std::int64_t dead = 0;                     ///< dead letters

  bool ok() const noexcept {
    for (const auto& check : checks)
      if (!check.ok) return false;
    return true;
  }
};

struct AuditOptions {
  /// How many differences are named; all are counted.
  std::size_t named = 100;
};

/// Compares the store with the database, in both directions: each order with all its fields, each
/// buyer, each return, the stream and its group, the counters, the definition, and the payments of
/// a sale that has some. Reads in pages; keeps 32 bytes for each order that is not in the database
/// yet, some 100 for each return. Blocks the thread, for some 20 seconds a million orders. What is
/// bought, brought in or cancelled meanwhile is no difference: the figures are those of the instant
/// at which the audit began. Of an archived sale it compares the database with the counters that
/// the store still has. Throws what the store and the database throw. The OrderStore is the audit's
/// alone meanwhile.
SaleAudit audit(Store& store, const Sale& sale, OrderStore& orders, AuditOptions options = {});

}  // namespace sluice
