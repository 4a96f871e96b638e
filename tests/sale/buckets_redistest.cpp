// A sale with buckets on a real server: processes that want the same units at the same time.
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "sale/shop.hpp"
#include "sluice/bucketed_sale.hpp"

namespace sluice {
namespace {

class SaleBucketsOnAServer : public testing::Test {
 protected:
  SaleDefinition define(std::int64_t stock) const {
    return {.name = name_, .stock = stock, .limit = 1, .number_type = "B"};
  }
  static void expect_all_right(Store& store, const BucketedSale& sale, OrderStore& orders) {
    for (const auto& check : audit(store, sale, orders).checks)
      EXPECT_TRUE(check.ok) << check.name << ": " << check.figure << ", expected " << check.expected
                            << " (" << check.detail << ")";
  }

  std::string name_ = testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string server_ = test::shared_server().url();
  std::unique_ptr<Store> store_ = open(server_);
  test::TempDir folder_;
};

/// Each thread has a Store of its own, as a process has.
TEST_F(SaleBucketsOnAServer, V30_ABorrowRaceForTheLastUnitHasOneBuyer) {
  store_->run({"DEL", "sluice:sales:types"}).get();
  auto sale = BucketedSale::create(*store_, define(1), {.buckets = 8}).get();
  constexpr int processes = 8;
  std::atomic<int> admitted = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int process = 0; process < processes; ++process)
    threads.emplace_back([&, process] {
      const auto store = open(server_);
      auto mine = std::move(*BucketedSale::load(*store, name_).get());
      for (int i = 0; i < 10; ++i) {
        auto answer = mine.buy({fmt::format("b{} {}", process, i)}, {"r"}).get();
        while (answer.outcome == SaleOutcome::moving)
          answer = mine.buy({fmt::format("b{} {}", process, i)}, {"r"}).get();
        admitted += answer.outcome == SaleOutcome::admitted;
        wrong += answer.outcome != SaleOutcome::admitted && answer.outcome != SaleOutcome::sold_out;
      }
    });
  threads.clear();
  EXPECT_EQ(admitted, 1);
  EXPECT_EQ(wrong, 0);
  const auto orders = open_order_store(test::database_url(folder_));
  BucketedWorker{*store_, sale, [&] { return open_order_store(test::database_url(folder_)); }}
      .drain();
  expect_all_right(*store_, sale, *orders);
}

TEST_F(SaleBucketsOnAServer, WorkersOfAllBucketsBringInWhatMovedBetweenThem) {
  store_->run({"DEL", "sluice:sales:types"}).get();
  auto sale = BucketedSale::create(*store_, define(400), {.buckets = 4}).get();
  BucketedWorker worker{*store_, sale,
                        [&] { return open_order_store(test::database_url(folder_)); }};
  std::jthread working{[&](const std::stop_token& stop) { worker.run(stop); }};
  // All buyers are those of one bucket, so that its row in the database needs the others' units.
  int bought = 0;
  for (int i = 0; bought < 400; ++i) {
    const BuyerId buyer{fmt::format("b{}", i)};
    if (&sale.bucket_of(buyer) != &sale.bucket(2)) continue;
    ASSERT_EQ(sale.buy(buyer, {"r"}).get().outcome, SaleOutcome::admitted);
    ++bought;
  }
  EXPECT_EQ(sale.buy({"late"}, {"r"}).get().outcome, SaleOutcome::sold_out);
  working.request_stop();
  working.join();
  worker.drain();
  EXPECT_EQ(worker.progress().inserted, 400U);
  EXPECT_EQ(worker.progress().dead, 0U);
  const auto orders = open_order_store(test::database_url(folder_));
  EXPECT_EQ(orders->stock(sale.bucket(2).definition().name)->left, 0);
  expect_all_right(*store_, sale, *orders);
}

}  // namespace
}  // namespace sluice
