#include "sale/sql/totals.hpp"

#include <fmt/format.h>

#include "sale/sql/order_store.hpp"

namespace sluice::sale {
namespace {

/// Of its orders.
void count_orders(soci::session& sql, long long sale, DatabaseTotals& totals) {
  long long orders = 0;
  long long units = 0;
  long long odd = 0;
  sql << fmt::format(
      "SELECT COUNT(*), COALESCE(SUM(CASE WHEN {0} THEN {1} ELSE 0 END), 0), "
      "COALESCE(SUM(CASE WHEN {1} <> units OR ({0} AND (version <> 0 OR reason <> '')) OR "
      "(NOT ({0}) AND version <> 1) THEN 1 ELSE 0 END), 0) FROM sale_orders WHERE sale = :s",
      stands, countable_units),
      soci::use(sale), soci::into(orders), soci::into(units), soci::into(odd);
  totals.orders = orders;
  totals.units = units;
  totals.odd = odd;
}

/// Of its returns, against the orders that ended.
void count_returns(soci::session& sql, long long sale, DatabaseTotals& totals) {
  long long odd_returns = 0;
  sql << fmt::format(
      "SELECT COUNT(*) FROM sale_returns AS back WHERE sale = :s AND NOT (seq = 1 AND "
      "done IN (0, 1) AND EXISTS (SELECT 1 FROM sale_orders AS ended WHERE ended.sale = "
      "back.sale AND ended.id = back.order_id AND ended.units = back.units AND NOT ({})))",
      stands),
      soci::use(sale), soci::into(odd_returns);
  long long not_returned = 0;
  sql << fmt::format(
      "SELECT COUNT(*) FROM sale_orders AS ended WHERE sale = :s AND NOT ({}) AND NOT EXISTS "
      "(SELECT 1 FROM sale_returns AS back WHERE back.sale = ended.sale AND "
      "back.order_id = ended.id AND back.units = ended.units)",
      stands),
      soci::use(sale), soci::into(not_returned);
  totals.odd_returns = odd_returns;
  totals.odd += not_returned;
}

/// Of the changes of its stock.
void count_changes(soci::session& sql, long long sale, DatabaseTotals& totals) {
  long long changes = 0;
  long long applied = 0;
  long long last_change = 0;
  sql << fmt::format(
      "SELECT COALESCE(SUM(CASE WHEN state = 'done' OR (state = 'pending' AND delta > 0) "
      "THEN {0} ELSE 0 END), 0), COALESCE(SUM(CASE WHEN state = 'done' THEN {0} ELSE 0 END), 0), "
      "COALESCE(MAX(CASE WHEN state <> 'pending' THEN seq ELSE 0 END), 0) FROM sale_changes "
      "WHERE sale = :s",
      countable_delta),
      soci::use(sale), soci::into(changes), soci::into(applied), soci::into(last_change);
  long long pending = 0;
  long long last_refused = 0;
  long long odd = 0;
  sql << fmt::format(
      "SELECT COALESCE(SUM(CASE WHEN state = 'pending' THEN 1 ELSE 0 END), 0), "
      "COALESCE(MAX(CASE WHEN state = 'refused' THEN seq ELSE 0 END), 0), "
      "COALESCE(SUM(CASE WHEN {} <> delta OR seq < 1 OR "
      "state NOT IN ('done', 'refused', 'pending') OR (state = 'pending' AND seq < latest.id) "
      "THEN 1 ELSE 0 END), 0) FROM sale_changes, (SELECT MAX(seq) AS id FROM sale_changes "
      "WHERE sale = :s) AS latest WHERE sale = :t",
      countable_delta),
      soci::use(sale), soci::use(sale), soci::into(pending), soci::into(last_refused),
      soci::into(odd);
  totals.changes = changes;
  totals.applied = applied;
  totals.last_change = last_change;
  totals.pending_changes = pending;
  totals.last_refused = last_refused;
  totals.odd_changes = odd;
}

}  // namespace

DatabaseTotals SqlOrderStore::totals(const std::string& sale) {
  DatabaseTotals totals;
  sessions_.in_snapshot([&](Connection& at) {
    at.sale_ids.erase(sale);  // whoever looks at all does not trust what was read before
    const auto in_sale = id_or_none(at, sale);
    totals = {.stock = stock_of(at, in_sale)};
    count_orders(at.sql, in_sale, totals);
    count_returns(at.sql, in_sale, totals);
    count_changes(at.sql, in_sale, totals);
    long long odd_epochs = 0;  // '' is none, though it reads as 0
    at.sql << "SELECT COUNT(*) FROM sale_stock WHERE id = :s AND NOT (epoch BETWEEN 0 AND "
              "1000000000000)",
        soci::use(in_sale), soci::into(odd_epochs);
    totals.epoch = odd_epochs > 0 ? -1 : epoch_of(at, in_sale);
  });
  return totals;
}

}  // namespace sluice::sale
