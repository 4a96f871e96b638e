// One process that serves more sales than commands may wait in its store.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/curl.hpp"
#include "server/service.hpp"
#include "sluice/open.hpp"
#include "support/comes_true.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::server {
namespace {

TEST(ManySales, EachIsWorkedThoughNotAllWorkersWaitInTheStore) {
  const test::RedisServer redis;
  const test::TempDir folder;
  const auto store = open(redis.url());
  std::vector<SaleDefinition> sales;
  for (int i = 0; i < 70; ++i)
    sales.push_back(
        {.name = fmt::format("s{}", i), .stock = 2, .number_type = fmt::format("S{}", i)});
  ServiceOptions options;
  options.shop.orders = "sqlite:" + (folder / "orders.db").string();
  options.http.loops = 1;
  const Service service{*store, options, sales};
  for (const auto& sale : sales)
    EXPECT_EQ(test::ask(service.port(), "POST", fmt::format("/v1/sales/{}/orders", sale.name),
                        {{"Sluice-Buyer", "ann"}, {"Idempotency-Key", "k"}})
                  .status,
              201);
  const auto orders = open_order_store(options.shop.orders);
  for (const auto& sale : sales)
    EXPECT_TRUE(test::comes_true([&] { return orders->totals(sale.name).orders == 1; }))
        << sale.name;
  const auto clients = store->run({"INFO", "clients"}).get().as_text();
  const std::string field = "blocked_clients:";
  const auto waiting = std::stoi(clients.substr(clients.find(field) + field.size()));
  EXPECT_GT(waiting, 0);
  EXPECT_LE(waiting, 48) << "of the 64 that may wait, others need some";
}

}  // namespace
}  // namespace sluice::server
