/// What the commands of `sluice sale` are told, and begin with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "sluice/order_store.hpp"
#include "sluice/sale.hpp"

namespace sluice::cli {

struct SaleArgs {
  SaleDefinition definition;
  std::string buyer;
  std::string request;
  std::int64_t units = 1;
  std::int64_t refunded_units = 0;  ///< 0: all that are left
  std::string orders;               ///< empty: $SLUICE_ORDERS, or a file here
  std::string also_orders;          ///< of a command that can do without
  bool new_database = false;
  bool new_store = false;
  std::string revive;
  std::string give_back;
  std::string file;
  std::string number;
  std::string reason;
  std::string key;
  std::string event;
  std::string provider;
  std::string by;
  std::string state = "flagged";
  std::string message;
  bool refunds = false;
  std::int64_t stock = -1;  ///< not given
  std::int64_t buckets = 1;
  std::size_t step = ArchiveOptions{}.step;
  PaymentTerms payment;
  std::chrono::milliseconds pay_within =
      std::chrono::duration_cast<std::chrono::milliseconds>(PaymentTerms{}.window);
  std::chrono::milliseconds grace =
      std::chrono::duration_cast<std::chrono::milliseconds>(PaymentTerms{}.grace);
  bool until_empty = false;
  bool recovers = false;
  std::size_t named = 100;
};

/// That of --orders. A file of SQLite that is missing is refused where the sale has one already, or
/// the command only reads.
std::unique_ptr<OrderStore> open_orders(const SaleArgs& args, Store& store,
                                        bool only_reads = false);
/// As open_store(): of a sale that is there. Makes no folder.
std::unique_ptr<Store> open_store_of_sale(const Globals& globals);
/// Throws Error{bad_argument}: the store knows no such sale; says what to do.
Sale load_sale(Store& store, const std::string& name);
Sale load_sale_of_order(Store& store, const SaleArgs& args);
/// A word that is not empty.
Target into_word(std::string& word);

/// Under which names the database has the orders of a sale: of one with buckets each of them.
std::vector<std::string> rows_of(OrderStore& orders, const std::string& sale);

// Orders of a sale, one at a time: sale_orders.cpp; payments, and what was not sent:
// sale_payments.cpp.

int cancel_order(const Globals& globals, const SaleArgs& args);
int refund_order(const Globals& globals, const SaleArgs& args);
int replay_messages(const Globals& globals, const SaleArgs& args);
int list_payments(const Globals& globals, const SaleArgs& args);
int settle_payment(const Globals& globals, const SaleArgs& args);
std::vector<Option> payments_options(SaleArgs& args, const Option& orders);
std::vector<Option> settle_options(SaleArgs& args, const Option& orders);
std::vector<Option> replay_options(SaleArgs& args, const Option& orders);
std::vector<Option> cancel_options(SaleArgs& args, const Option& orders);
std::vector<Option> refund_options(SaleArgs& args, const Option& orders);

}  // namespace sluice::cli
