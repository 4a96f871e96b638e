/// What every database of orders must do, whichever it is. A program says which it has.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "sluice/order_store.hpp"

namespace sluice {

struct DatabaseKind {
  std::string name;
  std::function<std::string()> make;  ///< a fresh database; returns its URL
  /// Runs a statement in it, beside Sluice.
  std::function<void(const std::string& url, const std::string& statement)> run;
  std::function<long(const std::string& url)> deadlocks;  ///< that the database has seen so far

  friend void PrintTo(const DatabaseKind& kind, std::ostream* to) { *to << kind.name; }
};

/// Those of this program.
std::vector<DatabaseKind> database_kinds();

inline SaleOrder order(std::int64_t id, std::string buyer, std::int64_t n = 1,
                       std::int64_t units = 1) {
  return {.number = "MT20260102" + std::to_string(1000 + id),
          .id = id,
          .units = units,
          .buyer = {std::move(buyer)},
          .n = n,
          .issued_at = WallTime{std::chrono::microseconds{1'700'000'000'000'000 + id}},
          .request = {"r" + std::to_string(id)}};
}

/// `count` orders of one unit, each of its own buyer.
inline std::vector<SaleOrder> orders_from(std::int64_t first, std::int64_t count) {
  std::vector<SaleOrder> orders;
  for (std::int64_t id = first; id < first + count; ++id)
    orders.push_back(order(id, "b" + std::to_string(id)));
  return orders;
}

class OrderStoreSuite : public testing::TestWithParam<DatabaseKind> {
 protected:
  OrderStoreSuite() { orders_->add_sale("s", 10); }

  InsertResult insert(std::vector<SaleOrder> orders) { return orders_->insert("s", orders); }

  std::string url_ = GetParam().make();
  std::unique_ptr<OrderStore> orders_ = open_order_store(url_);
};

}  // namespace sluice
