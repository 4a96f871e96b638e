/// What one transaction does to orders of a sale whose row it has locked: each change is of the
/// row, of the stock, of returns and refunds, and leaves a message, together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
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
/// it for, and Error{database} where the database has come less far than it had.
void count_change(Connection& at, const SqlDialect& dialect, const std::string& sale, long long id);
/// The store and the mark of a sale, as its row has them.
SaleLink link_of(soci::session& sql, long long id);

/// How often an order may change: a buyer who cancels his units one by one is told to stop.
inline constexpr std::int64_t most_versions = 100;

/// A row of sale_orders, whole.
struct OrderRow {
  SaleOrder order;
  std::int64_t returned = 0;
  std::int64_t version = 0;
  std::int64_t pay_by_us = 0;  ///< 0: there is none

  /// Units that were not cancelled while the others stood; those of an order that ended, too.
  std::int64_t units() const noexcept { return order.units - returned; }
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

  std::optional<OrderRow> find(std::int64_t id) const;
  /// Ids rising.
  std::vector<OrderRow> find(std::span<const std::int64_t> ids) const;
  std::optional<OrderRow> find_number(const std::string& number) const;
  PayableOrder payable(const OrderRow& row) const;

  /// Writes the row with its next version and leaves a message of it, where the sale has payments:
  /// its orders are those that somebody is told of. `amount`: money that moves; 0: none does.
  void change(OrderRow& row, OrderState to, std::string_view message, std::int64_t amount = 0,
              const std::string& reason = {}) const;

  // What follows belongs to the version that the row has now.

  /// Units go back to the stock, or, as a retake, are to be taken from it again.
  enum class Return { part, end, retake };
  void note_return(const OrderRow& row, std::int64_t units, Return kind,
                   const std::string& cause = {}) const;
  void note_refund(const OrderRow& row, std::int64_t amount, const std::string& provider,
                   const std::string& event) const;
  /// More units, or fewer. Where a sale that had none left, in all its buckets, gets some, a
  /// message says so, once.
  void change_stock(std::int64_t units) const;
  /// The same message, where others change the stock. REQUIRES: before it is changed.
  void tell_if_it_reopens(std::int64_t units) const;

 private:
  bool is_over() const;
  void leave_message(const OrderRow& row, std::string_view type, std::int64_t amount) const;
  void leave_message(long long row, long long order, long long seq, std::string_view type,
                     const Json& data) const;

  Connection& at_;
  const SqlDialect& dialect_;
  const long long sale_;
  const std::string& name_;
  std::optional<PaymentTerms> terms_;
};

/// What the sale's definition, as the database keeps it, says of payment.
std::optional<PaymentTerms> terms_of_sale(soci::session& sql, long long sale);

}  // namespace sluice::sale
