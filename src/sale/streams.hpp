/// The streams of a sale read whole, orders on their way and dead letters, while entries move from
/// one to the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sale/definition.hpp"

namespace sluice::sale {

struct StreamOrder {
  std::string entry;
  SaleOrder order;
  bool is_dead = false;
};

struct StreamsRead {
  std::int64_t dead = 0;            ///< dead letters
  std::int64_t poison = 0;          ///< entries that make no order
  std::vector<std::string> places;  ///< of some of these: "dead letter 1795243971762-0"
};

/// Calls `visit` with pages of orders. An order that stands in a stream all the while, also when it
/// is buried or revived meanwhile, is in one of them, or in two.
StreamsRead read_streams(Store& store, const SaleKeys& keys,
                         const std::function<void(const std::vector<StreamOrder>&)>& visit);

/// Whether an order is on its way where its admission put it: a buyer who asks must not have a
/// hundred thousand others read. False: it may still stand elsewhere, see read_streams().
bool is_where_it_was_put(Store& store, const SaleKeys& keys, const SaleOrder& order);

}  // namespace sluice::sale
