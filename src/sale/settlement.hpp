/// What store and database must agree on when an order ends, or the stock of a sale changes. The
/// database decides and notes what the store has to follow; the store follows once. Each function
/// may be killed anywhere: settle(), or the same call again, does what is left.
///
///   end     database: state, units back, return noted -> store: units back -> database: done
///           (where the database does not have the order: its row, state, return noted)
///   raise   database: more units, change noted        -> store: more units -> database: done
///   lower   database: change noted -> store: fewer units, or refused
///           -> database: fewer units, done
///   retake  database: asked -> store: units taken again, or refused
///           -> database: fewer units and paid, or a refund
///
/// So the database never has fewer units to sell than the store.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "sale/records.hpp"
#include "sluice/order_store.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice::sale {

/// Which database a sale goes into, as its hash keeps it: what it is, a space, where it was.
std::string database_word(OrderStore& orders);
bool is_same_database(std::string_view word, std::string_view other);

/// Makes this database the one that the sale goes into, unless there is one, and enters the sale
/// there. True: nobody may change the sale before it is recovered; of an archived one: its database
/// was restored from before. Throws Error{config_mismatch}
/// where the sale goes into another one; says which, and what to do. Where a store of an older
/// version remembers none, and has orders that are on no way, a database that does not know the
/// sale is refused, too, unless it `may_be_new`.
bool attach(Store& store, const SaleDefinition& sale, OrderStore& orders, bool may_be_new = false);

/// The same, for what will bring in orders: each learns what the other knows of the sale. Shuts the
/// gate of a sale that was lost and created again.
struct Entered {
  bool is_there = false;  ///< in the store
  bool is_lost = false;   ///< what is there was created again: none of its orders may get in
  std::int64_t epoch = 0;
  std::string born = {};  ///< when what is there was created
};
Entered enter(Store& store, const SaleDefinition& sale, OrderStore& orders);

/// Shuts the gate, unless that is done: buyers wait for a recovery. `reason`: see definition.hpp.
/// `born`: of the sale that the caller knows; of one that was made since nothing is changed. True:
/// with this call.
bool shut_gate(Store& store, const SaleKeys& keys, std::string_view reason,
               const std::string& born);

/// Shuts it where the store would give numbers that the database has: it was brought back to an
/// earlier state, which no reply of a store that runs on says.
void stop_giving_twice(Store& store, const SaleDefinition& sale, OrderStore& orders);

/// recover(), if the gate is shut for want of it, or the sale is lost, and no other recovery is
/// under way. Not of a sale that the database does not know.
std::optional<SaleRecovery> recover_if_needed(Store& store, const std::string& name,
                                              OrderStore& orders);

/// What the database has committed stands, whatever fails behind it: no failure says that nothing
/// has happened. `has_committed` is looked at when something fails.
decltype(auto) after_commit(auto&& work, const bool& has_committed = true) {
  try {
    return work();
  } catch (const Error& failure) {
    if (!has_committed || failure.effect() == Effect::unknown) throw;
    throw Error{failure.errc(), failure.message(), Effect::unknown};
  }
}

/// Blocks the thread. Throws what the store and the database throw.
class Settlement {
 public:
  Settlement(Store& store, const SaleDefinition& sale, OrderStore& orders);

  /// Ends an order of the store. The database gets it as one that ended where it is still on its
  /// way. Throws Error: database (refuses it even so; or does not have it, though it is not on its
  /// way), server (the sale has to be recovered first).
  EndedOrder end(const SaleOrder& order, OrderState state, const std::string& reason);
  /// The same for a dead letter. One that the database can never take is removed from the store.
  EndedOrder end_letter(const SaleOrder& order, const std::string& reason);
  /// Applies a payment that the database keeps, and asks the store for the units of an order that
  /// it comes too late for.
  PaymentResult pay(const Payment& payment);
  /// Ends up to `most` orders that were not paid in time. Returns how many.
  std::size_t expire(std::size_t most);
  /// Cancels units of an order that stands, also a paid one. Throws as end(). `unknown`: the order
  /// is on its way to the database.
  UnitsResult cancel_units(const SaleOrder& order, std::int64_t units, const std::string& key,
                           const std::string& reason);
  /// False: more is sold than that, and nothing was changed. Throws Error{server} where store and
  /// database do not know the same changes.
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
  void settle(std::int64_t id);
  void settle(const OrderReturn& what);
  void give_back(const OrderReturn& what);
  void retake(const OrderReturn& what);
  bool settle(const StockChange& change);
  bool change_stock(std::int64_t stock, bool& has_begun);
  InsertResult insert_ended(const SaleOrder& order, OrderState state, const std::string& reason);
  void check_on_its_way(const SaleOrder& order);
  void check_gate() const;
  std::int64_t stock_there();
  std::int64_t figure(std::string_view field) const;
  std::int64_t figure(std::string_view field, const Value& value) const;

  Store& store_;
  const SaleDefinition sale_;
  const SaleKeys keys_;
  OrderStore& orders_;
  Records records_;
  const bool is_shut_;
  const Value
      epoch_;  // read before the orders: what a recovery has forgotten since gets in nowhere
};

}  // namespace sluice::sale
