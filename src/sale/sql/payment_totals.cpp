#include <fmt/format.h>

#include "sale/order_store_text.hpp"
#include "sale/sql/payments.hpp"
#include "sale/sql/totals.hpp"

namespace sluice::sale {
namespace {

/// Of the sale's payments: how many are in each state that is not the last. One that waits has no
/// order yet, each other one has an order of the sale.
void count_payments(soci::session& sql, const std::string& name, long long sale,
                    PaymentTotals& totals) {
  long long waiting = 0;
  long long asking = 0;
  long long flagged = 0;
  long long refunding = 0;
  long long odd = 0;
  sql << "SELECT COALESCE(SUM(CASE WHEN state = 'waiting' THEN 1 ELSE 0 END), 0), "
         "COALESCE(SUM(CASE WHEN state = 'asking' THEN 1 ELSE 0 END), 0), "
         "COALESCE(SUM(CASE WHEN state = 'flagged' THEN 1 ELSE 0 END), 0), "
         "COALESCE(SUM(CASE WHEN state = 'refunding' THEN 1 ELSE 0 END), 0), "
         "COALESCE(SUM(CASE WHEN state NOT IN ('waiting', 'asking', 'applied', 'returned', "
         "'flagged', 'refunding', 'refunded', 'settled') OR (state = 'waiting' AND (order_id <> 0 "
         "OR note <> '')) OR (state <> 'waiting' AND (state NOT IN ('flagged', 'refunding', "
         "'refunded', 'settled') OR order_id <> 0) AND NOT EXISTS (SELECT 1 FROM sale_orders AS "
         "its WHERE its.sale = :s AND its.id = sale_payments.order_id)) THEN 1 ELSE 0 END), 0) "
         "FROM sale_payments WHERE sale_name = :n",
      soci::use(sale), soci::use(name), soci::into(waiting), soci::into(asking),
      soci::into(flagged), soci::into(refunding), soci::into(odd);
  totals.waiting = waiting;
  totals.asking = asking;
  totals.flagged = flagged;
  totals.refunds = refunding;
  totals.odd_events = odd;
}

long long count(soci::session& sql, const std::string& query, long long sale) {
  long long found = 0;
  sql << query, soci::use(sale), soci::into(found);
  return found;
}

}  // namespace

PaymentTotals SqlOrderPayments::totals(const std::string& sale) {
  PaymentTotals totals;
  const auto name = to_column(sale);
  sessions_.in_snapshot([&](Connection& at) {
    totals = {};
    const auto in_sale = find_sale(at, sale);
    count_payments(at.sql, name, in_sale.value_or(0), totals);
    const auto terms = in_sale ? terms_of_sale(at.sql, *in_sale) : std::nullopt;
    if (!terms) return;
    count_histories(at, *in_sale, sale, *terms, totals);
    totals.refunds += count(
        at.sql, "SELECT COUNT(*) FROM sale_refunds WHERE sale = :s AND state = 'asked'", *in_sale);
    totals.messages = count(
        at.sql, "SELECT COUNT(*) FROM sale_messages WHERE sale = :s AND state = 'due'", *in_sale);
    totals.dead = count(
        at.sql, "SELECT COUNT(*) FROM sale_messages WHERE sale = :s AND state = 'dead'", *in_sale);
  });
  return totals;
}

}  // namespace sluice::sale
