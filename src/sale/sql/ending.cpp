#include <fmt/format.h>

#include "sale/sql/order_store.hpp"

namespace sluice::sale {

EndedOrder SqlOrderStore::end_order(const std::string& sale, std::int64_t id, OrderState state,
                                    const std::string& reason) {
  EndedOrder ended;
  sessions_.in_transaction([&](Connection& at) {
    const SaleTransaction in{at, dialect(), locked_id(at, sale), sale};
    ended = {};
    auto row = in.find(id);
    if (!row) return false;
    ended.now = row->order.state == OrderState::awaiting;
    if (ended.now) {
      end(in, *row, state, reason);
      in.change_stock(row->units());
      row->order.state = state;
    }
    ended.order = row->order;
    ended.reason = reason_of(at, in.sale(), id);
    return ended.now;
  });
  return ended;
}

InsertResult SqlOrderStore::insert_ended(const std::string& sale, const SaleOrder& order,
                                         OrderState state, const std::string& reason,
                                         std::int64_t epoch) {
  InsertResult result;
  sessions_.in_transaction([&](Connection& at) {
    const SaleTransaction in{at, dialect(), locked_id(at, sale), sale};
    result = {.stale = epoch_of(at, in.sale()) != epoch};
    if (result.stale) return false;
    if (auto why = insert_row(at, in.sale(), order, result); !why.empty())
      result.rejected.push_back({.index = 0, .reason = std::move(why)});
    if (result.inserted == 0) return false;
    end(in, in.find(order.id).value(), state, reason);
    return true;
  });
  return result;
}

/// All but the stock: of an order that the database did not have, it has no units.
void SqlOrderStore::end(const SaleTransaction& sale, OrderRow row, OrderState state,
                        const std::string& reason) {
  sale.change(row, state, fmt::format("order.{}", to_string(state)), 0, reason);
  sale.note_return(row, row.units(), SaleTransaction::Return::end);
}

void SqlOrderStore::return_done(const std::string& sale, std::int64_t id, std::int64_t seq) {
  OrderReturn what;
  what.order.id = id;
  what.seq = seq;
  returns_done(sale, std::span{&what, 1});
}

void SqlOrderStore::returns_done(const std::string& sale, std::span<const OrderReturn> returns) {
  if (returns.empty()) return;
  sessions_.in_transaction([&](Connection& at) {
    const long long in_sale = locked_id(at, sale);
    for (const auto& what : returns) {
      const long long key = what.order.id;
      const long long of_order = what.seq;
      at.sql << "UPDATE sale_returns SET done = 1 WHERE sale = :s AND order_id = :i AND seq = :q",
          soci::use(in_sale), soci::use(key), soci::use(of_order);
    }
    return true;
  });
}

}  // namespace sluice::sale
