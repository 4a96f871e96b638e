/// What one transaction does to orders of a sale whose row it has locked: each change is of the
/// row, of the stock, of payments, returns and refunds, and leaves a message, together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "sale/order_life.hpp"
#include "sale/payment_terms.hpp"
#include "sale/sql/sessions.hpp"
#include "sluice/order_store.hpp"

namespace sluice::sale {

/// Its id in the tables; empty: the database does not know the sale.
std::optional<long long> find_sale(Connection& at, const std::string& sale);
/// Throws Error{database} where there is none.
long long id_of_sale(Connection& at, const SqlDialect& dialect, const std::string& sale);
/// The same of a sale whose row nobody else changes until the transaction ends.
long long locked_sale(Connection& at, const SqlDialect& dialect, const std::string& sale);

/// Counts a change of a sale whose row is locked, or was changed in this transaction. Throws
/// Error{config_mismatch} where it is sold in another store than the one that this process changes
/// it for, or a newer program has changed the tables, and Error{database} where the database has
/// come less far than it had.
void count_change(Connection& at, const SqlDialect& dialect, const std::string& sale, long long id);
/// How far a sale has come, as a text that rises.
std::string mark_of(long long epoch, long long commits);
/// The store and the mark of a sale, as its row has them. Throws Error{config_mismatch} where a
/// newer program has changed the tables.
SaleLink link_of(Connection& at, const SqlDialect& dialect, long long id);

/// How often an order may change: a buyer who cancels his units one by one is told to stop.
inline constexpr std::int64_t most_versions = 100;
/// Rows of one order in a table: each cancellation may have a refund, which is a change, too.
inline constexpr std::size_t most_of_order = 2 * most_versions + 10;

/// A row of sale_orders, whole.
struct OrderRow {
  SaleOrder order;
  std::int64_t returned = 0;
  std::int64_t version = 0;
  std::int64_t pay_by_us = 0;  ///< 0: there is none
  std::string reason = {};     ///< why it ended

  /// Units that were not cancelled while the others stood; those of an order that ended, too.
  std::int64_t units() const noexcept { return order.units - returned; }
};

/// The reason of an expired order whose payments are flagged.
inline constexpr std::string_view held =
    "held: it was paid late, and units of it went back in parts, before its database was restored";

/// What happens to an order, with what its transition needs.
struct Happening {
  OrderEvent event;
  std::int64_t units = 0;            ///< of a part that is taken back
  std::int64_t amount = 0;           ///< of a refund that is done
  std::string cause = {};            ///< the key of a cancellation
  std::string reason = {};           ///< empty: the order keeps the one that it has
  const Payment* payment = nullptr;  ///< that pays, or that was to pay
};

/// What a transition has done beside the row.
struct Happened {
  std::int64_t units_back = 0;  ///< that the stock is to get; below 0: to lose
  std::int64_t refund = 0;      ///< money that goes back
};

class SaleTransaction {
 public:
  /// REQUIRES: the row of the sale is locked, and has this id.
  SaleTransaction(Connection& at, const SqlDialect& dialect, long long sale,
                  const std::string& name);

  const std::optional<PaymentTerms>& terms() const noexcept { return terms_; }
  long long sale() const noexcept { return sale_; }
  const std::string& name() const noexcept { return name_; }
  soci::session& sql() const noexcept { return at_.sql; }

  bool is_archived() const { return has_field("archived"); }

  std::optional<OrderRow> find(std::int64_t id) const;
  /// Ids rising.
  std::vector<OrderRow> find(std::span<const std::int64_t> ids) const;
  /// By its number, or by its id.
  std::optional<OrderRow> find_named(const std::string& name) const;
  PayableOrder payable(const OrderRow& row) const;

  // transitions.cpp

  /// The transition that the table has for it (order_life.hpp), with all that it notes: the row's
  /// next version, its message, returns, refunds, and what became of the payment. Empty: in the
  /// state of the order it does not happen. The caller changes the stock. Throws Error{corrupt}
  /// where money is to go back of an order that is paid without a payment.
  std::optional<Happened> happens(OrderRow& row, const Happening& what) const;
  /// Applies the payments of an order that are kept and not applied yet, as they came: what comes
  /// next happens to the order that they have made. True: there were some.
  bool take_up_payments(OrderRow& row) const;
  /// Notes what became of a payment. `order_id` 0: the sale has no such order.
  void settle(const Payment& payment, PaymentState state, std::int64_t order_id,
              const std::string& note = {}) const;
  bool has_waiting_payment(const OrderRow& row) const;
  /// A payment that came late waits for the store to say whether units are left.
  bool is_asking(const OrderRow& row) const;
  /// The one that an order was paid with, or is to be.
  std::optional<Payment> payment_of(const OrderRow& row, PaymentState state) const;

  /// More units, or fewer. Where a sale that had none left, in all its buckets, gets some, a
  /// message says so, once.
  void change_stock(std::int64_t units) const;
  /// The same message, where others change the stock. REQUIRES: before it is changed.
  void tell_if_it_reopens(std::int64_t units) const;

 private:
  bool is_over() const;
  bool has_field(const std::string& field) const;
  void take_up(OrderRow& row, const Payment& payment) const;
  std::string misfit(const Payment& payment, const OrderRow& row) const;
  /// Writes the row with its next version and leaves a message of it, where the sale has payments:
  /// its orders are those that somebody is told of. `amount`: money that moves; 0: none does.
  void change(OrderRow& row, const Transition& step, std::int64_t amount) const;
  // Notes belong to the version that the row has now.
  void note_return(const OrderRow& row, std::int64_t units, UnitsDo what,
                   const std::string& cause) const;
  void note_refund(const OrderRow& row, std::int64_t seq, std::int64_t amount,
                   const Payment& payment) const;
  /// The price of parts that were taken back before their payment came.
  void note_overpaid(const OrderRow& row, const Payment& payment) const;
  std::vector<PartBack> parts_of(const OrderRow& row) const;
  void leave_message(const OrderRow& row, std::string_view type, std::int64_t amount) const;
  void leave_message(long long row, long long order, long long seq, std::string_view type,
                     const Json& data) const;

  Connection& at_;
  const SqlDialect& dialect_;
  const long long sale_;
  const std::string& name_;
  std::optional<PaymentTerms> terms_;
};

/// What a message says of an order that has become this. `amount`: money that moves; 0: none does.
Json message_of(const OrderRow& row, const std::string& whole, const PaymentTerms& terms,
                std::int64_t amount);

/// What the sale's definition, as the database keeps it, says of payment.
std::optional<PaymentTerms> terms_of_sale(soci::session& sql, long long sale);

}  // namespace sluice::sale
