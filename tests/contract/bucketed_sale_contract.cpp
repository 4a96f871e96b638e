// What BucketedSale promises on every Store: buyers of all buckets, units that move to them.
#include <fmt/format.h>

#include <map>

#include "contract/stores.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/when_all.hpp"

namespace sluice {
namespace {

class BucketedSaleContract : public test::StoreContract {
 protected:
  /// Names of sales have no braces.
  static std::string sale_name() {
    auto text = name("sale");
    std::erase_if(text, [](char c) { return c == '{' || c == '}'; });
    return text;
  }
  BucketedSale make(std::int64_t stock, std::int64_t buckets) {
    store().run({"DEL", "sluice:sales:types"}).get();  // each test uses the same
    return BucketedSale::create(store(), {.name = sale_name(), .stock = stock, .number_type = "BC"},
                                {.buckets = buckets})
        .get();
  }
};
SLUICE_EVERY_STORE(BucketedSaleContract);
SLUICE_SHARDED_STORE(BucketedSaleContract);

TEST_P(BucketedSaleContract, SellsEachUnitOnceToWhomeverItMoves) {
  auto sale = make(5, 4);
  std::vector<Task<Admission>> wishes;
  for (int i = 0; i < 40; ++i) wishes.push_back(sale.buy({fmt::format("b{}", i)}, {"r"}));
  std::map<std::string, int> numbers;
  for (const auto& answer : when_all(std::move(wishes)).get()) {
    if (answer.order) ++numbers[answer.order->number];
    EXPECT_TRUE(answer.has_order() || answer.outcome == SaleOutcome::sold_out)
        << to_string(answer.outcome);
  }
  EXPECT_EQ(numbers.size(), 5U);
  const auto status = sale.status().get();
  EXPECT_EQ(status.whole.state, SaleState::sold_out);
  EXPECT_EQ(status.whole.sold, 5);
  EXPECT_EQ(status.under_way, 0);
  std::int64_t stock = 0;
  for (const auto& bucket : status.buckets) stock += bucket.stock;
  EXPECT_EQ(stock, 5);
}

TEST_P(BucketedSaleContract, RepeatsAndFindsInTheBucketOfTheBuyer) {
  auto sale = make(10, 3);
  const auto first = sale.buy({"ann"}, {"r1"}).get();
  ASSERT_EQ(first.outcome, SaleOutcome::admitted);
  EXPECT_EQ(sale.buy({"ann"}, {"r1"}).get().outcome, SaleOutcome::repeated);
  EXPECT_EQ(sale.buy({"ann"}, {"r2"}).get().outcome, SaleOutcome::already_bought);
  EXPECT_EQ(sale.find({"ann"}, {"r1"}).get(), first.order);
  EXPECT_EQ(sale.latest({"ann"}).get(), first.order);
  auto joined = BucketedSale::load(store(), sale.definition().name).get();
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->buckets(), 3);
  EXPECT_EQ(joined->bucket_of_number(first.order->number), &joined->bucket_of({"ann"}));
  joined->close().get();
  EXPECT_EQ(sale.buy({"bob"}, {"r"}).get().outcome, SaleOutcome::closed);
}

}  // namespace
}  // namespace sluice
