/// What most tests of a sale need: a server, a sale on it, a database in a fresh folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "sluice/open.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

/// Fails with every check that is not as it should be.
inline void expect_clean(Store& store, const Sale& sale, OrderStore& orders) {
  for (const auto& check : audit(store, sale, orders).checks)
    EXPECT_TRUE(check.ok) << check.name << ": " << check.figure << ", expected " << check.expected
                          << " (" << check.detail << ")";
}

inline Admission buy(Sale& sale, std::string buyer, std::string request, std::int64_t units = 1) {
  return sale.buy(BuyerId{std::move(buyer)}, RequestId{std::move(request)}, units).get();
}

inline std::string database_url(const TempDir& folder) {
  return "sqlite:" + (folder / "orders.db").string();
}

/// One redis-server for all cases of a program: each case has its own sale.
inline RedisServer& shared_server() {
  static RedisServer server;
  return server;
}

}  // namespace sluice::test
