#include <fmt/format.h>

#include "sale/order_store_text.hpp"
#include "sale/sql/payments.hpp"
#include "sale/sql/totals.hpp"

namespace sluice::sale {
namespace {

/// Of the sale's payments: how many are in each state that is not the last.
void count_payments(soci::session& sql, const std::string& name, PaymentTotals& totals) {
  long long waiting = 0;
  long long asking = 0;
  long long flagged = 0;
  long long odd = 0;
  sql << "SELECT COALESCE(SUM(CASE WHEN state = 'waiting' THEN 1 ELSE 0 END), 0), "
         "COALESCE(SUM(CASE WHEN state = 'asking' THEN 1 ELSE 0 END), 0), "
         "COALESCE(SUM(CASE WHEN state = 'flagged' THEN 1 ELSE 0 END), 0), "
         "COALESCE(SUM(CASE WHEN state NOT IN ('waiting', 'asking', 'applied', 'returned', "
         "'flagged') OR (state <> 'waiting' AND order_id = 0) THEN 1 ELSE 0 END), 0) "
         "FROM sale_payments WHERE sale_name = :n",
      soci::use(name), soci::into(waiting), soci::into(asking), soci::into(flagged),
      soci::into(odd);
  totals.waiting = waiting;
  totals.asking = asking;
  totals.flagged = flagged;
  totals.odd_events = odd;
}

long long count(soci::session& sql, const std::string& query, long long sale) {
  long long found = 0;
  sql << query, soci::use(sale), soci::into(found);
  return found;
}

/// Each order against its payments and its refunds: what was paid and did not go back is the price
/// of the units that it still has.
void count_money(soci::session& sql, long long sale, const std::string& name,
                 const PaymentTerms& terms, PaymentTotals& totals) {
  long long odd_payments = 0;
  long long odd_refunds = 0;
  sql << fmt::format(
      "SELECT COALESCE(SUM(CASE WHEN COALESCE(paid.payments, 0) <> CASE WHEN state IN ('paid', "
      "'refunding', 'refunded') THEN 1 ELSE 0 END OR (state <> 'expired' AND COALESCE(paid.asking, "
      "0) <> 0) OR COALESCE(paid.asking, 0) > 1 THEN 1 ELSE 0 END), 0), "
      "COALESCE(SUM(CASE WHEN COALESCE(paid.amount, 0) - COALESCE(back.amount, 0) <> CASE WHEN "
      "state = 'paid' THEN {} * {} ELSE 0 END OR (state <> 'refunding' AND state <> 'paid' AND "
      "COALESCE(back.asked, 0) <> 0) OR (state = 'refunding' AND COALESCE(back.asked, 0) = 0) THEN "
      "1 ELSE 0 END), 0) "
      "FROM sale_orders LEFT JOIN (SELECT order_id, SUM(CASE WHEN state IN ('applied', 'returned') "
      "THEN 1 ELSE 0 END) AS payments, SUM(CASE WHEN state = 'asking' THEN 1 ELSE 0 END) AS "
      "asking, SUM(CASE WHEN state IN ('applied', 'returned') THEN amount ELSE 0 END) AS amount "
      "FROM sale_payments WHERE sale_name = :n GROUP BY order_id) AS paid ON paid.order_id = "
      "sale_orders.id LEFT JOIN (SELECT order_id, SUM(amount) AS amount, SUM(CASE WHEN state = "
      "'asked' THEN 1 ELSE 0 END) AS asked FROM sale_refunds WHERE sale = :s GROUP BY order_id) AS "
      "back ON back.order_id = sale_orders.id WHERE sale = :t",
      countable_rest, terms.price),
      soci::use(name), soci::use(sale), soci::use(sale), soci::into(odd_payments),
      soci::into(odd_refunds);
  totals.odd_payments = odd_payments;
  totals.odd_refunds = odd_refunds;
}

}  // namespace

PaymentTotals SqlOrderPayments::totals(const std::string& sale) {
  PaymentTotals totals;
  const auto name = to_column(sale);
  sessions_.in_snapshot([&](Connection& at) {
    totals = {};
    count_payments(at.sql, name, totals);
    const auto in_sale = find_sale(at, sale);
    const auto terms = in_sale ? terms_of_sale(at.sql, *in_sale) : std::nullopt;
    if (!terms) return;
    count_money(at.sql, *in_sale, name, *terms, totals);
    totals.refunds = count(
        at.sql, "SELECT COUNT(*) FROM sale_refunds WHERE sale = :s AND state = 'asked'", *in_sale);
    totals.messages = count(
        at.sql, "SELECT COUNT(*) FROM sale_messages WHERE sale = :s AND state = 'due'", *in_sale);
    totals.dead = count(
        at.sql, "SELECT COUNT(*) FROM sale_messages WHERE sale = :s AND state = 'dead'", *in_sale);
    totals.odd_deadlines = count(
        at.sql,
        "SELECT COUNT(*) FROM sale_orders WHERE sale = :s AND state = 'awaiting' AND pay_by <= 0",
        *in_sale);
    totals.odd_messages =
        count(at.sql,
              fmt::format(
                  "SELECT COUNT(*) FROM sale_orders LEFT JOIN (SELECT order_id, COUNT(*) AS told, "
                  "MIN(seq) AS first, MAX(seq) AS last FROM sale_messages WHERE sale = {0} GROUP "
                  "BY order_id) AS told ON told.order_id = sale_orders.id WHERE sale = :s AND "
                  "(version <> COALESCE(told.told, 0) OR version <> COALESCE(told.last, 0) OR "
                  "(version > 0 AND told.first <> 1))",
                  *in_sale),
              *in_sale);
  });
  return totals;
}

}  // namespace sluice::sale
