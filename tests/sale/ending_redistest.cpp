// The end of a sale on a real server: many orders, in small steps, beside others.
#include <thread>

#include "sale/shop.hpp"
#include "sluice/when_all.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class SaleEnding : public testing::Test {
 protected:
  void buy_many(int orders, int each) {
    for (int bought = 0; bought < orders;) {
      std::vector<Task<Admission>> wishes;
      for (int i = 0; i < 500 && bought < orders; ++i, ++bought)
        wishes.push_back(
            sale_.buy({std::to_string(bought / each)}, {"r" + std::to_string(bought)}));
      for (const auto& answer : when_all(std::move(wishes)).get())
        ASSERT_EQ(answer.outcome, SaleOutcome::admitted);
    }
  }
  Value command(std::initializer_list<std::string_view> words) { return store_->run(words).get(); }

  static std::string new_name() {  // each time: an archived sale stays closed
    static int times = 0;
    return testing::UnitTest::GetInstance()->current_test_info()->name() + std::to_string(++times);
  }

  Sale create() {
    command({"DEL", "sluice:sales:types"});  // each test of the server uses the same one
    return Sale::create(*store_, {.name = name_, .stock = 9'999, .limit = 0, .number_type = "MT"})
        .get();
  }

  std::string name_ = new_name();
  std::unique_ptr<Store> store_ = open(test::shared_server().url());
  Sale sale_ = create();
  test::TempDir folder_;
  std::string url_ = test::database_url(folder_);
  std::unique_ptr<OrderStore> orders_ = open_order_store(url_);
};

// Each step goes on where the last one ended: from the beginning, all would pass over what the
// first ones emptied, and find nothing.
TEST_F(SaleEnding, E16_AnArchiveDeletesManyOrdersInSmallSteps) {
  buy_many(6000, 2);
  command({"CONFIG", "RESETSTAT"});
  EXPECT_TRUE(sale_.archive(*orders_, {.file = {}, .step = 20}));
  const auto stats = command({"INFO", "commandstats"}).as_text();
  constexpr std::string_view scans = "cmdstat_hscan:calls=";
  EXPECT_LT(std::stoi(stats.substr(stats.find(scans) + scans.size())), 3000)
      << "6000 orders at 20 a step are 300 steps, and the audit's pages";
  EXPECT_EQ(command({"KEYS", "{" + name_ + "}:*"}).as_items().size(), 1U);
  EXPECT_EQ(orders_->page(name_, 0, 10'000).size(), 6000U);
}

TEST_F(SaleEnding, UnitsReturnExactlyOnceWhileManyCancelAndBuy) {
  constexpr int buyers = 60;
  buy_many(buyers, 1);
  sale_.change_stock(*orders_, buyers);
  {
    std::vector<std::jthread> crew;
    for (int t = 0; t < 3; ++t)  // all of them cancel the same orders
      crew.emplace_back([&] {
        const auto store = open(test::shared_server().url());
        const auto orders = open_order_store(url_);
        auto sale = Sale::load(*store, name_).get();
        for (int i = 0; i < buyers; i += 2)
          sale->cancel(*orders, {std::to_string(i)}, {"r" + std::to_string(i)}, "why");
      });
    crew.emplace_back([&] {
      const auto orders = open_order_store(url_);
      OrderWorker{*store_, sale_, *orders}.drain();
    });
    crew.emplace_back([&] {
      for (int sold = 0; sold < buyers / 2;)
        sold += test::buy(sale_, "late", "late " + std::to_string(sold)).has_order();
    });
  }
  EXPECT_EQ(sale_.status().get().sold, buyers);
  EXPECT_EQ(test::buy(sale_, "too late", "r").outcome, SaleOutcome::sold_out);
  OrderWorker{*store_, sale_, *orders_}.drain();
  EXPECT_EQ(sale_.status().get().dead, 0) << "the database always has room for what is admitted";
  EXPECT_EQ(orders_->stock(name_)->left, 0);
  EXPECT_EQ(orders_->returns(name_, 0, 1000, false).size(), std::size_t{buyers / 2});
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_F(SaleEnding, AWorkerOfAnArchivedSaleMakesNoKeysOfIt) {
  buy_many(1, 1);
  sale_.archive(*orders_);
  EXPECT_THROW((OrderWorker{*store_, sale_, *orders_}.drain()), Error);
  EXPECT_EQ(command({"EXISTS", "{" + name_ + "}:orders"}).as_integer(), 0);
}

}  // namespace
}  // namespace sluice
