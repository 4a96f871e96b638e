#include "sale/order_store_text.hpp"
#include "sale/sql/columns.hpp"
#include "sale/sql/order_store.hpp"
#include "sale/sql/payments.hpp"

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
  sql << "SELECT note FROM " << due << " ORDER BY due_us DESC LIMIT 1", soci::use(sale),
      soci::into(why);
  figures.last_failure = from_column(why);
  if (const auto stopped = stopped_at(sql, sale); stopped != 0) {
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

}  // namespace sluice::sale

std::vector<sluice::DayTotal> sluice::sale::SqlOrderPayments::by_day(const std::string& sale,
                                                                     std::chrono::minutes offset) {
  constexpr std::size_t most = 1000;
  constexpr std::chrono::microseconds a_day = std::chrono::days{1};
  const auto after_utc = std::chrono::microseconds{offset}.count();
  const auto read = [&](Connection& at) {
    std::vector<DayTotal> totals;
    const auto in_sale = find_sale(at, sale);
    if (!in_sale) return totals;
    const long long key = *in_sale;
    std::vector<long long> day(most), orders(most), units(most);
    std::vector<std::string> state(most);
    soci::statement select =
        (at.sql.prepare << fmt::format(
             "SELECT issued_us - (issued_us - {}) % {} AS day, state, COUNT(*), SUM(units - "
             "returned) FROM sale_orders WHERE sale = :s GROUP BY day, state ORDER BY day DESC, "
             "state LIMIT {}",
             after_utc, a_day.count(), most),
         soci::use(key), soci::into(day), soci::into(state), soci::into(orders), soci::into(units));
    if (!select.execute(true)) return totals;
    for (std::size_t i = 0; i < day.size(); ++i)
      totals.push_back({.day = WallTime{std::chrono::microseconds{day[i]}},
                        .state = order_state_of(state[i]),
                        .orders = orders[i],
                        .units = units[i]});
    return totals;
  };
  return sessions_.guarded(read);
}
