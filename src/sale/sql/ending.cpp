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
    const bool is_changed = in.take_up_payments(*row);
    const auto done = end(in, *row, state, reason);
    ended.now = done.has_value();
    if (done) in.change_stock(done->units_back);
    ended.order = row->order;
    ended.reason = row->reason;
    return is_changed || ended.now;
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
    auto row = in.find(order.id).value();
    end(in, row, state, reason);
    return true;
  });
  return result;
}

/// All but the stock: of an order that the database did not have, it has no units. Empty: the order
/// does not await its payment.
std::optional<Happened> SqlOrderStore::end(const SaleTransaction& sale, OrderRow& row,
                                           OrderState state, const std::string& reason) {
  if (row.order.state != OrderState::awaiting) return std::nullopt;
  return sale.happens(
      row, {.event = state == OrderState::expired ? OrderEvent::expired : OrderEvent::cancelled,
            .reason = reason});
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
