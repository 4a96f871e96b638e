/// The database that admitted orders end in.
///
/// Guarantee (of `open_order_store`): an insert is one transaction, on disk when it returns; an
///   order is inserted once, however often it is given; the units of the inserted orders are
///   exactly what the database's stock lost; the database itself refuses a second order under the
///   same (sale, id), (sale, number) or (sale, buyer, n), and a stock below zero.
/// Not guaranteed: anything about rows that other programs change.
/// Threads: one at a time. Processes: as many as the database allows; each opens its own.
///
///     auto orders = open_order_store("sqlite:/var/lib/shop/orders.db");
///     orders->add_sale("maotai", 100);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/sale.hpp"

namespace sluice {

struct InsertResult {
  struct Rejected {
    std::size_t index;   ///< among the orders given
    std::string reason;  ///< "the database has 3 units left, the order asks 5"
  };
  std::size_t inserted = 0;
  std::size_t repeated = 0;        ///< were there already, the same in all fields
  std::vector<Rejected> rejected;  ///< can never be inserted; all others were
};

struct DatabaseStock {
  std::int64_t initial;
  std::int64_t left;
};

/// Every function throws Error when the database cannot be used now: database (locked, gone),
/// read_only, out_of_space, corrupt. The effect is `unknown` where a COMMIT was under way, else
/// `none`; giving the same orders again is safe.
class OrderStore {
 public:
  virtual ~OrderStore() = default;

  /// Enters a sale and its stock, unless it is there. Throws Error{config_mismatch} when it is
  /// there with another stock.
  virtual void add_sale(const std::string& sale, std::int64_t stock) = 0;

  /// Brings the orders of one sale in, and takes their units off its stock. Rejects one by one what
  /// can never fit.
  virtual InsertResult insert(const std::string& sale, std::span<const SaleOrder> orders) = 0;

  /// Up to `most` orders with an id above `after`, ids rising.
  virtual std::vector<SaleOrder> page(const std::string& sale, std::int64_t after,
                                      std::size_t most) = 0;
  /// Empty: the database does not know the sale.
  virtual std::optional<DatabaseStock> stock(const std::string& sale) = 0;
  /// How many buyers have more than `limit` orders in the database.
  virtual std::int64_t buyers_above(const std::string& sale, std::int64_t limit) = 0;

  /// For messages: where it is, without a password.
  virtual std::string describe() const = 0;
};

/// "sqlite:/path/to/orders.db" (created when it is not there), "sqlite::memory:" (gone with the
/// OrderStore). The tables are made where they are missing.
/// Throws Error: bad_argument for another scheme, and as OrderStore's functions.
std::unique_ptr<OrderStore> open_order_store(const std::string& url);

}  // namespace sluice
