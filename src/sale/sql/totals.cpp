#include "sale/sql/totals.hpp"

#include <fmt/format.h>

#include "sale/records.hpp"
#include "sale/sql/order_store.hpp"

namespace sluice::sale {
namespace {

/// Of its orders. Where somebody is told of changes, the messages count the versions.
void count_orders(soci::session& sql, long long sale, DatabaseTotals& totals) {
  long long orders = 0;
  long long units = 0;
  long long odd = 0;
  const bool is_paid_for = terms_of_sale(sql, sale).has_value();
  sql << fmt::format(
      "SELECT COUNT(*), COALESCE(SUM(CASE WHEN {0} THEN {1} ELSE 0 END), 0), "
      "COALESCE(SUM(CASE WHEN {2} <> units OR {1} < 1 OR ({0} AND reason NOT IN ('', '{4}')) "
      "OR {3} THEN 1 ELSE 0 END), 0) FROM sale_orders WHERE sale = :s",
      standing, countable_rest, countable_units,
      is_paid_for ? "version < 0"
                  : "pay_by <> 0 OR version <> (SELECT COUNT(*) FROM sale_returns AS back WHERE "
                    "back.sale = sale_orders.sale AND back.order_id = sale_orders.id)",
      told_by_store),
      soci::use(sale), soci::into(orders), soci::into(units), soci::into(odd);
  totals.orders = orders;
  totals.units = units;
  totals.odd = odd;
}

/// Of its returns, against the orders: what went back and was not taken again, is what they do not
/// have any more.
void count_returns(soci::session& sql, long long sale, DatabaseTotals& totals) {
  long long odd_returns = 0;
  sql << "SELECT COUNT(*) FROM sale_returns AS back WHERE sale = :s AND NOT (seq >= 1 AND "
         "done IN (0, 1) AND ends IN (0, 1) AND retake IN (0, 1) AND EXISTS (SELECT 1 FROM "
         "sale_orders AS its WHERE its.sale = back.sale AND its.id = back.order_id AND back.units "
         "BETWEEN 1 AND its.units AND back.seq <= its.version))",
      soci::use(sale), soci::into(odd_returns);
  long long not_returned = 0;
  sql << fmt::format(
      "SELECT COUNT(*) FROM sale_orders LEFT JOIN (SELECT order_id, SUM(CASE WHEN ends = 0 THEN "
      "{0} ELSE 0 END) AS parts, SUM(CASE WHEN ends = 0 OR (retake = 1 AND done = 0) THEN 0 WHEN "
      "retake = 1 THEN -{0} ELSE {0} END) AS ends FROM sale_returns "
      "WHERE sale = :s GROUP BY order_id) AS back ON back.order_id = sale_orders.id "
      "WHERE sale = :t AND (COALESCE(back.parts, 0) <> "
      "returned OR COALESCE(back.ends, 0) <> CASE WHEN {1} THEN 0 ELSE {2} END)",
      countable_units, standing, countable_rest),
      soci::use(sale), soci::use(sale), soci::into(not_returned);
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
    long long odd_epochs = 0;  // '' is no number, though it reads as 0
    at.sql << "SELECT COUNT(*) FROM sale_stock WHERE id = :s AND NOT (epoch BETWEEN 0 AND "
              "1000000000000 AND changed BETWEEN -1000000000000 AND 1000000000000 AND "
              "moved BETWEEN -1000000000000 AND 1000000000000)",
        soci::use(in_sale), soci::into(odd_epochs);
    totals.epoch = odd_epochs > 0 ? -1 : epoch_of(at, in_sale);
  });
  return totals;
}

}  // namespace sluice::sale
