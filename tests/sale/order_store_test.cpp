#include "sluice/order_store.hpp"

#include <gtest/gtest.h>

#include "support/temp_dir.hpp"

namespace sluice {
namespace {

SaleOrder order(std::int64_t id, std::string buyer, std::int64_t n = 1, std::int64_t units = 1) {
  return {.number = "MT20260102" + std::to_string(1000 + id),
          .id = id,
          .units = units,
          .buyer = {std::move(buyer)},
          .n = n,
          .issued_at = WallTime{std::chrono::microseconds{1'700'000'000'000'000 + id}},
          .request = {"r" + std::to_string(id)}};
}

class OrderStoreTest : public testing::Test {
 protected:
  OrderStoreTest() { orders_->add_sale("s", 10); }

  InsertResult insert(std::vector<SaleOrder> orders) { return orders_->insert("s", orders); }

  test::TempDir folder_;
  std::string url_ = "sqlite:" + (folder_ / "orders.db").string();
  std::unique_ptr<OrderStore> orders_ = open_order_store(url_);
};

TEST_F(OrderStoreTest, KeepsWhatItWasGiven) {
  const std::vector<SaleOrder> given{order(1, "ann"), order(2, std::string("b\0b\xff", 4), 1, 3),
                                     order(3, "100%ü")};
  EXPECT_EQ(insert(given).inserted, 3U);
  const auto again = open_order_store(url_);
  EXPECT_EQ(again->page("s", 0, 10), given);
  EXPECT_EQ(again->page("s", 1, 1), std::vector<SaleOrder>{given[1]});
  EXPECT_EQ(again->page("s", 3, 10), std::vector<SaleOrder>{});
  EXPECT_EQ(again->stock("s")->initial, 10);
  EXPECT_EQ(again->stock("s")->left, 5);
  EXPECT_FALSE(again->stock("other"));
}

TEST_F(OrderStoreTest, TakesARepeatForWhatItIs) {
  insert({order(1, "ann"), order(2, "bob")});
  const auto result = insert({order(1, "ann"), order(3, "cid"), order(2, "bob")});
  EXPECT_EQ(result.inserted, 1U);
  EXPECT_EQ(result.repeated, 2U);
  EXPECT_TRUE(result.rejected.empty());
  EXPECT_EQ(orders_->stock("s")->left, 7);
}

TEST_F(OrderStoreTest, RejectsWhatBelongsToAnother) {
  insert({order(1, "ann")});
  auto same_id = order(1, "bob");
  auto same_number = order(2, "bob");
  same_number.number = order(1, "ann").number;
  const auto result =
      insert({same_id, same_number, order(3, "ann"), order(4, "bob"), order(5, "ann", 2)});
  EXPECT_EQ(result.inserted, 2U);
  ASSERT_EQ(result.rejected.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.rejected[i].index, i);
    EXPECT_NE(result.rejected[i].reason.find("another order"), std::string::npos);
  }
  EXPECT_EQ(orders_->stock("s")->left, 7);
}

TEST_F(OrderStoreTest, NeverSellsMoreThanItsStock) {
  const auto result = insert({order(1, "ann", 1, 6), order(2, "bob", 1, 5), order(3, "cid", 1, 4)});
  EXPECT_EQ(result.inserted, 2U);
  ASSERT_EQ(result.rejected.size(), 1U);
  EXPECT_EQ(result.rejected[0].index, 1U);
  EXPECT_EQ(result.rejected[0].reason, "the database has 4 units left, the order has 5");
  EXPECT_EQ(orders_->stock("s")->left, 0);
  EXPECT_EQ(orders_->page("s", 0, 10).size(), 2U);
}

TEST_F(OrderStoreTest, CountsBuyersAboveALimit) {
  insert({order(1, "ann", 1), order(2, "ann", 2), order(3, "bob", 1)});
  EXPECT_EQ(orders_->buyers_above("s", 1), 1);
  EXPECT_EQ(orders_->buyers_above("s", 2), 0);
}

TEST_F(OrderStoreTest, SalesDoNotMix) {
  orders_->add_sale("t", 5);
  insert({order(1, "ann")});
  EXPECT_EQ(orders_->insert("t", std::vector<SaleOrder>{order(1, "ann")}).inserted, 1U);
  EXPECT_EQ(orders_->stock("t")->left, 4);
  EXPECT_EQ(orders_->stock("s")->left, 9);
}

TEST_F(OrderStoreTest, ComparesTheStockOfASale) {
  orders_->add_sale("s", 10);
  try {
    orders_->add_sale("s", 11);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch);
  }
}

TEST_F(OrderStoreTest, LivesInMemoryToo) {
  const auto orders = open_order_store("sqlite::memory:");
  orders->add_sale("s", 2);
  EXPECT_EQ(orders->insert("s", std::vector<SaleOrder>{order(1, "ann")}).inserted, 1U);
  const auto result = orders->insert(
      "s", std::vector<SaleOrder>{order(1, "ann"), order(2, "bob", 1, 5), order(3, "cid")});
  EXPECT_EQ(result.inserted, 1U);
  EXPECT_EQ(result.repeated, 1U);
  EXPECT_EQ(result.rejected.size(), 1U);
  EXPECT_EQ(orders->page("s", 0, 10).size(), 2U);
}

TEST_F(OrderStoreTest, RefusesAnUnknownScheme) {
  for (const auto* const url : {"mysql://x", "", "sqlite:", "orders.db", "sqlite:/a\"b"}) {
    try {
      open_order_store(url);
      ADD_FAILURE() << url;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument) << url;
    }
  }
}

TEST_F(OrderStoreTest, SaysWhatIsWrongWithAPath) {
  try {
    open_order_store("sqlite:" + (folder_ / "no/such/folder/o.db").string());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::database);
    EXPECT_NE(error.message().find("no/such/folder"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice
