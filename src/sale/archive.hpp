/// The end of a sale: what Sale::archive() does.
#pragma once

#include <stop_token>

#include "sluice/order_store.hpp"
#include "sluice/sale.hpp"

namespace sluice::sale {

/// See Sale::archive().
bool archive(Store& store, Sale& sale, OrderStore& orders, const ArchiveOptions& options,
             const std::stop_token& stop);

/// Payments of orders that an archived sale never had wait for nothing any more; others pay.
void flag_orphans(const std::string& sale, OrderPayments& payments);

/// Writes all orders of a sale that the database has into `file`, as CSV: a line that names the
/// columns, then one for each order, ids rising. Buyers, request ids and reasons stand as in the
/// database, that is with %XX for bytes that are no text. The file is there whole, and on disk, or
/// not at all. Throws Error{out_of_space} or {bad_argument} when it cannot be written.
void export_orders(OrderStore& orders, const std::string& sale, const std::string& file);

}  // namespace sluice::sale
