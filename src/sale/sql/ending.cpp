#include "sale/order_store_text.hpp"
#include "sale/sql/order_store.hpp"

namespace sluice::sale {

EndedOrder SqlOrderStore::end_order(const std::string& sale, std::int64_t id, OrderState state,
                                    const std::string& reason) {
  EndedOrder ended;
  sessions_.in_transaction([&](Connection& at) {
    const long long in_sale = locked_id(at, sale);
    ended.now = end_row(at, in_sale, id, state, reason);
    ended.order = find(at, in_sale, id);
    ended.reason = reason_of(at, in_sale, id);
    if (!ended.now) return false;
    const long long units = ended.order->units;
    at.sql << "UPDATE sale_stock SET remaining = remaining + :u WHERE id = :s", soci::use(units),
        soci::use(in_sale);
    note_return(at, in_sale, id, units);
    return true;
  });
  return ended;
}

InsertResult SqlOrderStore::insert_ended(const std::string& sale, const SaleOrder& order,
                                         OrderState state, const std::string& reason,
                                         std::int64_t epoch) {
  InsertResult result;
  sessions_.in_transaction([&](Connection& at) {
    const long long in_sale = locked_id(at, sale);
    result = {.stale = epoch_of(at, in_sale) != epoch};
    if (result.stale) return false;
    if (auto why = insert_row(at, in_sale, order, result); !why.empty())
      result.rejected.push_back({.index = 0, .reason = std::move(why)});
    if (result.inserted == 0) return false;
    end_row(at, in_sale, order.id, state, reason);
    note_return(at, in_sale, order.id, order.units);
    return true;
  });
  return result;
}

/// False: the order is not there, or has ended before.
bool SqlOrderStore::end_row(Connection& at, long long sale, std::int64_t id, OrderState state,
                            const std::string& reason) {
  const long long key = id;
  const std::string to{to_string(state)};
  const auto why = to_column(reason);
  soci::statement end =
      (at.sql.prepare << "UPDATE sale_orders SET state = :t, reason = :r, version = version + 1 "
                         "WHERE sale = :s AND id = :i AND state = 'awaiting'",
       soci::use(to), soci::use(why), soci::use(sale), soci::use(key));
  end.execute(true);
  return end.get_affected_rows() == 1;
}

void SqlOrderStore::note_return(Connection& at, long long sale, std::int64_t id,
                                std::int64_t units) {
  const long long key = id;
  const long long back = units;
  at.sql << "INSERT INTO sale_returns (sale, order_id, seq, units, done) "
            "VALUES (:s, :i, 1, :u, 0)",
      soci::use(sale), soci::use(key), soci::use(back);
}

void SqlOrderStore::return_done(const std::string& sale, std::int64_t id, std::int64_t seq) {
  sessions_.in_transaction([&](Connection& at) {
    const long long in_sale = locked_id(at, sale);
    const long long key = id;
    const long long of_order = seq;
    at.sql << "UPDATE sale_returns SET done = 1 WHERE sale = :s AND order_id = :i AND seq = :q",
        soci::use(in_sale), soci::use(key), soci::use(of_order);
    return true;
  });
}

}  // namespace sluice::sale
