#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sale/order_store_text.hpp"
#include "sale/payment_terms.hpp"
#include "sale/sql/columns.hpp"
#include "sale/sql/order_store.hpp"
#include "sale/sql/payments.hpp"
#include "sale/sql/totals.hpp"

namespace sluice::sale {
namespace {

constexpr std::size_t most_states = 32;  // there are six; somebody may have written others

struct StateCount {
  std::string state;
  long long rows = 0;
};

/// `query`: a state and a count, of the sale in its one parameter.
template <class Key>
std::vector<StateCount> count_states(soci::session& sql, const std::string& query, const Key& key) {
  std::vector<std::string> state(most_states);
  std::vector<long long> rows(most_states);
  soci::statement select =
      (sql.prepare << query, soci::use(key), soci::into(state), soci::into(rows));
  std::vector<StateCount> counts;
  if (!select.execute(true)) return counts;
  for (std::size_t i = 0; i < state.size(); ++i) counts.push_back({state[i], rows[i]});
  return counts;
}

std::int64_t count_of(const std::vector<StateCount>& counts, std::string_view state) {
  for (const auto& count : counts)
    if (count.state == state) return count.rows;
  return 0;
}

void count_deadlines(soci::session& sql, const SqlDialect& dialect, long long sale,
                     OrderFigures& figures) {
  constexpr long long soon = std::chrono::microseconds{std::chrono::minutes{1}}.count();
  long long next = 0;
  long long due = 0;
  sql << fmt::format(
      "SELECT COALESCE(MIN(pay_by), 0), COALESCE(SUM(CASE WHEN pay_by <= {} + {} THEN 1 ELSE 0 "
      "END), 0) FROM sale_orders WHERE sale = :s AND state = 'awaiting' AND pay_by > 0",
      dialect.now_us, soon),
      soci::use(sale), soci::into(next), soci::into(due);
  if (next > 0) figures.next_due = WallTime{std::chrono::microseconds{next}};
  figures.due_soon = due;
}

void count_failing(soci::session& sql, const std::string& name, long long sale,
                   OrderFigures& figures) {
  const auto count = [&](const std::string& query, const auto& key, std::int64_t& of) {
    long long found = 0;
    sql << "SELECT COUNT(*) FROM " << query, soci::use(key), soci::into(found);
    of += found;
  };
  const std::string back = "sale_payments WHERE sale_name = :n AND state = 'refunding'";
  count(back, name, figures.refunds);
  count(back + " AND failure <> ''", name, figures.refunds_failing);
  count("sale_refunds WHERE sale = :s AND state = 'asked' AND note <> ''", sale,
        figures.refunds_failing);
  const std::string due = "sale_messages WHERE sale = :s AND state = 'due' AND note <> ''";
  count(due, sale, figures.messages_failing);
  long long since = 0;
  std::string why;
  sql << "SELECT COALESCE(MIN(at_us), 0) FROM " << due, soci::use(sale), soci::into(since);
  const auto stopped = stopped_at(sql, sale);
  // The one that stopped them was due at once; others wait for their next attempt.
  const auto order = stopped > 1 ? fmt::format("ABS(due_us - {})", stopped) : "due_us DESC";
  sql << "SELECT note FROM " << due << " ORDER BY " << order << " LIMIT 1", soci::use(sale),
      soci::into(why);
  figures.last_failure = from_column(why);
  if (stopped != 0) {
    figures.messages_stopped = figures.messages;
    figures.messages_failing = 0;
    if (stopped > 1) figures.stopped_since = WallTime{std::chrono::microseconds{stopped}};
  } else if (since > 0) {
    figures.failing_since = WallTime{std::chrono::microseconds{since}};
  }
}

}  // namespace

OrderFigures SqlOrderStore::figures(const std::string& sale) {
  OrderFigures figures;
  const auto name = to_column(sale);
  sessions_.in_snapshot([&](Connection& at) {
    figures = {};
    const auto payments = count_states(
        at.sql,
        "SELECT state, COUNT(*) FROM sale_payments WHERE sale_name = :n AND state IN ('waiting', "
        "'asking', 'flagged') GROUP BY state",
        name);
    figures.payments_waiting = count_of(payments, "waiting");
    figures.payments_asking = count_of(payments, "asking");
    figures.payments_flagged = count_of(payments, "flagged");
    const auto found = find_sale(at, sale);
    if (!found) return;
    const long long id = *found;
    for (const auto& [state, rows] : count_states(
             at.sql, "SELECT state, COUNT(*) FROM sale_orders WHERE sale = :s GROUP BY state", id))
      figures.orders.push_back({order_state_of(state), rows});
    count_deadlines(at.sql, dialect(), id, figures);
    figures.refunds = count_of(
        count_states(at.sql,
                     "SELECT state, COUNT(*) FROM sale_refunds WHERE sale = :s AND state = 'asked' "
                     "GROUP BY state",
                     id),
        "asked");
    const auto messages = count_states(at.sql,
                                       "SELECT state, COUNT(*) FROM sale_messages WHERE sale = :s "
                                       "AND state IN ('due', 'dead') GROUP BY state",
                                       id);
    figures.messages = count_of(messages, "due");
    figures.messages_dead = count_of(messages, "dead");
    count_failing(at.sql, name, id, figures);
  });
  return figures;
}

// --- by day ---

namespace {

constexpr std::size_t most_days = 1000;

/// The day of an instant, as a column; days begin `offset` after those of UTC.
std::string day_of(std::string_view column, std::chrono::minutes offset) {
  return fmt::format("{0} - ({0} - {1}) % {2} AS day", column,
                     std::chrono::microseconds{offset}.count(),
                     std::chrono::microseconds{std::chrono::days{1}}.count());
}

WallTime instant(long long us) { return WallTime{std::chrono::microseconds{us}}; }

}  // namespace

std::vector<DayTotal> SqlOrderPayments::by_day(const std::string& sale,
                                               std::chrono::minutes offset) {
  const auto read = [&](Connection& at) {
    std::vector<DayTotal> totals;
    const auto in_sale = find_sale(at, sale);
    if (!in_sale) return totals;
    const long long key = *in_sale;
    std::vector<long long> day(most_days), orders(most_days), units(most_days), back(most_days);
    std::vector<std::string> state(most_days);
    soci::statement select =
        (at.sql.prepare << fmt::format(
             "SELECT {0}, state, COUNT(*), SUM(CASE WHEN {1} THEN units - returned ELSE units END),"
             " SUM(CASE WHEN {1} THEN returned ELSE 0 END) FROM sale_orders WHERE sale = :s GROUP "
             "BY day, state ORDER BY day DESC, state LIMIT {2}",
             day_of("issued_us", offset), standing, most_days),
         soci::use(key), soci::into(day), soci::into(state), soci::into(orders), soci::into(units),
         soci::into(back));
    if (!select.execute(true)) return totals;
    for (std::size_t i = 0; i < day.size(); ++i)
      totals.push_back({.day = instant(day[i]),
                        .state = order_state_of(state[i]),
                        .orders = orders[i],
                        .units = units[i],
                        .returned = back[i]});
    return totals;
  };
  return sessions_.guarded(read);
}

/// A refund, or a payment, that went back, or was settled, keeps in `due_us` when that was.
std::vector<DayMoney> SqlOrderPayments::money_by_day(const std::string& sale,
                                                     std::chrono::minutes offset) {
  const auto name = to_column(sale);
  const auto read = [&](Connection& at) {
    std::vector<DayMoney> all;
    const auto of_payments = sale.empty() ? "sale_name <> :" : "sale_name = :";
    const auto of_refunds = sale.empty() ? "sale <> :s" : "sale = :s";
    const long long in_sale = sale.empty() ? 0 : find_sale(at, sale).value_or(0);
    const auto moves = fmt::format(
        "SELECT received_us AS at_us, provider, currency, 1 AS ins, amount AS paid, 0 AS outs, 0 "
        "AS back, 0 AS hand FROM sale_payments WHERE {0}n UNION ALL SELECT due_us, provider, "
        "currency, 0, 0, {2} FROM sale_payments WHERE {0}m AND state IN ('refunded', 'settled') "
        "UNION ALL SELECT due_us, provider, currency, 0, 0, {2} FROM sale_refunds WHERE {1} AND "
        "state IN ('done', 'settled')",
        of_payments, of_refunds,
        "CASE WHEN state = 'settled' THEN 0 ELSE 1 END, CASE WHEN state = 'settled' THEN 0 ELSE "
        "amount END, CASE WHEN state = 'settled' THEN amount ELSE 0 END");
    std::vector<long long> day(most_days), ins(most_days), paid(most_days), outs(most_days),
        back(most_days), hand(most_days);
    std::vector<std::string> provider(most_days), currency(most_days);
    soci::statement select =
        (at.sql.prepare << fmt::format(
             "SELECT {}, provider, currency, SUM(ins), SUM(paid), SUM(outs), SUM(back), SUM(hand) "
             "FROM ({}) AS moves GROUP BY day, provider, currency ORDER BY day DESC, provider, "
             "currency LIMIT {}",
             day_of("at_us", offset), moves, most_days),
         soci::use(name), soci::use(name), soci::use(in_sale), soci::into(day),
         soci::into(provider), soci::into(currency), soci::into(ins), soci::into(paid),
         soci::into(outs), soci::into(back), soci::into(hand));
    if (!select.execute(true)) return all;
    for (std::size_t i = 0; i < day.size(); ++i)
      all.push_back({instant(day[i]), provider[i], from_column(currency[i]), ins[i], paid[i],
                     outs[i], back[i], hand[i]});
    return all;
  };
  return sessions_.guarded(read);
}

std::vector<OrderMoney> SqlOrderPayments::money_of(const std::string& sale,
                                                   std::span<const std::int64_t> ids) {
  const auto name = to_column(sale);
  const auto read = [&](Connection& at) {
    std::vector<OrderMoney> all;
    const auto in_sale = find_sale(at, sale);
    const auto terms = in_sale ? terms_of_sale(at.sql, *in_sale) : std::nullopt;
    if (!terms || ids.empty()) return all;
    const long long key = *in_sale;
    const auto size = rows_for(ids.size());
    std::vector<long long> id(size), paid(size), back(size), hand(size);
    // A payment that was settled before its order came names the order by its number alone.
    const auto moves = fmt::format(
        "SELECT order_id, amount AS paid, {0} AS back, {1} AS hand FROM sale_payments WHERE "
        "sale_name = :n AND currency = :c AND order_id IN ({2}) UNION ALL SELECT its.id, amount, "
        "{0}, {1} FROM sale_payments JOIN sale_orders AS its ON its.sale = :s AND its.number = "
        "sale_payments.number WHERE sale_name = :m AND currency = :d AND order_id = 0 AND its.id "
        "IN ({2}) UNION ALL SELECT order_id, 0, CASE WHEN state = 'done' THEN amount ELSE 0 END, "
        "CASE WHEN state = 'settled' THEN amount ELSE 0 END FROM sale_refunds WHERE sale = :t AND "
        "order_id IN ({2})",
        "CASE WHEN sale_payments.state = 'refunded' THEN amount ELSE 0 END",
        "CASE WHEN sale_payments.state = 'settled' THEN amount ELSE 0 END", fmt::join(ids, ","));
    soci::statement select =
        (at.sql.prepare << fmt::format(
             "SELECT order_id, SUM(paid), SUM(back), SUM(hand) FROM ({}) AS moves GROUP BY "
             "order_id",
             moves),
         soci::use(name), soci::use(terms->currency), soci::use(key), soci::use(name),
         soci::use(terms->currency), soci::use(key), soci::into(id), soci::into(paid),
         soci::into(back), soci::into(hand));
    if (!select.execute(true)) return all;
    for (std::size_t i = 0; i < id.size(); ++i) all.push_back({id[i], paid[i], back[i], hand[i]});
    return all;
  };
  return sessions_.guarded(read);
}

}  // namespace sluice::sale
