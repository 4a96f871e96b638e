// The audit finds what was tampered with, and names it.
#include <gtest/gtest.h>
#include <sqlite3/soci-sqlite3.h>

#include <set>

#include "engine/embedded_store.hpp"
#include "sale/order_store_sql.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using Names = std::set<std::string>;

class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    for (int i = 0; i < 8; ++i) buy(i);
    OrderWorker{*store_, sale_, *orders_}.drain();
    buy(8);  // one is still on its way
  }

  void buy(int buyer) {
    ASSERT_TRUE(sale_.buy(BuyerId{std::to_string(buyer)}, RequestId{"r"}, 2).get().has_order());
  }
  void sql(const std::string& statement) {
    soci::session other{soci::sqlite3, "db=" + file_};
    other << statement;
  }
  void store(std::initializer_list<std::string_view> command) { store_->run(command).get(); }

  Names failing() {
    Names names;
    for (const auto& check : audit(*store_, sale_, *orders_).checks)
      if (!check.ok) names.insert(check.name);
    return names;
  }

  std::unique_ptr<Store> store_ = engine::open_embedded({});
  Sale sale_ = Sale::create(*store_, {.name = "s", .stock = 20, .number_type = "MT"}).get();
  test::TempDir folder_;
  std::string file_ = (folder_ / "orders.db").string();
  std::unique_ptr<OrderStore> orders_ = open_order_store("sqlite:" + file_);
};

TEST_F(AuditTest, FindsNothingWhereNothingIsWrong) {
  EXPECT_EQ(failing(), Names{});
  const auto found = audit(*store_, sale_, *orders_);
  EXPECT_TRUE(found.ok());
  EXPECT_EQ(found.admitted, 9);
  EXPECT_EQ(found.in_database, 8);
  EXPECT_EQ(found.on_the_way, 1);
  EXPECT_EQ(found.dead, 0);
}

TEST_F(AuditTest, FindsALostOrder) {
  sql("DELETE FROM sale_orders WHERE buyer = '3'");
  EXPECT_EQ(failing(), (Names{"database_stock_lost_what_was_ordered",
                              "numbers_dense_and_ids_rising", "orders_admitted_but_nowhere",
                              "sold_plus_left_is_stock", "units_of_orders_are_sold"}));
}

TEST_F(AuditTest, FindsALostEntryOfTheStream) {
  store({"DEL", "{s}:orders"});
  EXPECT_EQ(failing(), (Names{"orders_admitted_but_nowhere", "sold_plus_left_is_stock",
                              "units_of_orders_are_sold"}));
}

TEST_F(AuditTest, FindsAnOrderThatNobodyWasAdmittedFor) {
  sql("INSERT INTO sale_orders (sale, id, number, buyer, n, units, issued_us, request) "
      "SELECT sale, id + 1000, 'MT202001010001', 'thief', 1, 2, 0, 'r' FROM sale_orders"
      " WHERE buyer = '7'");
  EXPECT_EQ(failing(), (Names{"database_stock_lost_what_was_ordered",
                              "numbers_dense_and_ids_rising", "orders_nobody_was_admitted_for",
                              "sold_plus_left_is_stock", "units_of_orders_are_sold"}));
}

TEST_F(AuditTest, FindsAStockThatWasChangedByHand) {
  sql("UPDATE sale_stock SET remaining = remaining + 1");
  EXPECT_EQ(failing(), (Names{"database_stock_lost_what_was_ordered"}));
}

TEST_F(AuditTest, FindsADatabaseThatBeganOtherwise) {
  sql("UPDATE sale_stock SET initial = initial + 5, remaining = remaining + 5");
  EXPECT_EQ(failing(), (Names{"database_stock_began_as_stock"}));
}

TEST_F(AuditTest, FindsOverselling) {
  store({"HSET", "{s}:sale", "sold", "21"});
  EXPECT_EQ(failing(),
            (Names{"sold_plus_left_is_stock", "units_of_orders_are_sold", "units_oversold"}));
}

TEST_F(AuditTest, FindsABuyerWithTwoOrders) {
  sql("UPDATE sale_orders SET buyer = '3', n = 2 WHERE buyer = '4'");
  EXPECT_EQ(failing(), (Names{"buyers_above_limit"}));
}

TEST_F(AuditTest, FindsANumberOutOfPlace) {
  sql("UPDATE sale_orders SET number = 'MT202001010001' WHERE buyer = '4'");
  EXPECT_EQ(failing(), (Names{"numbers_dense_and_ids_rising"}));
  sql("UPDATE sale_orders SET number = 'rubbish' WHERE buyer = '4'");
  EXPECT_EQ(failing(), (Names{"numbers_dense_and_ids_rising"}));
}

TEST_F(AuditTest, FindsCountersOfTheStoreThatLie) {
  store({"HINCRBY", "{s}:sale", "orders", "1"});
  EXPECT_EQ(failing(), (Names{"orders_counted"}));
  store({"HDEL", "{s}:buyers", "3"});
  EXPECT_EQ(failing(), (Names{"orders_counted", "orders_nobody_was_admitted_for"}));
}

TEST_F(AuditTest, FindsThatTheSaleIsGone) {
  store({"DEL", "{s}:sale"});
  EXPECT_EQ(failing(), (Names{"sale_is_loaded"}));
}

}  // namespace
}  // namespace sluice
