/// What store and database must agree on when an order ends, or the stock of a sale changes. The
/// database decides and notes what the store has to follow; the store follows once. Each function
/// may be killed anywhere: settle(), or the same call again, does what is left.
///
///   end     database: state, units back, return noted -> store: units back -> database: done
///           (where the database does not have the order: its row, state, return noted)
///   raise   database: more units, change noted        -> store: more units -> database: done
///   lower   database: change noted -> store: fewer units, or refused -> database: fewer units,
///   done
///
/// So the database never has fewer units to sell than the store.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "sale/records.hpp"
#include "sluice/order_store.hpp"

namespace sluice::sale {

/// Blocks the thread. Throws what the store and the database throw.
class Settlement {
 public:
  Settlement(Store& store, const SaleDefinition& sale, OrderStore& orders);

  /// Ends an order of the store. The database gets it as one that ended where it is still on its
  /// way. Throws Error{database} when the database refuses it even so.
  EndedOrder end(const SaleOrder& order, OrderState state, const std::string& reason);
  /// False: more is sold than that, and nothing was changed.
  bool change_stock(std::int64_t stock);
  /// Does what was begun and not done. Throws Error{server} where the store has lost an order, or a
  /// change of the stock.
  void settle();

  struct Some {
    std::optional<std::int64_t> next;  ///< where to go on; empty: the end was reached
    std::exception_ptr lost;           ///< the first that the store cannot follow
  };
  /// A part of that: a change of the stock, and up to `most` returns of orders with an id above
  /// `after`.
  Some settle_some(std::int64_t after, std::size_t most);

 private:
  void settle(const OrderReturn& what);
  bool settle(const StockChange& change);

  Store& store_;
  const SaleDefinition sale_;
  const SaleKeys keys_;
  OrderStore& orders_;
  Records records_;
};

}  // namespace sluice::sale
