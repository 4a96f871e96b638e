#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "sale/shop.hpp"

namespace sluice {
namespace {

using test::buy;
using namespace std::chrono_literals;

class SaleWorker : public testing::Test {
 protected:
  void buy_many(int orders, std::int64_t units = 1) {
    std::vector<Task<Admission>> wishes;
    for (int i = 0; i < orders; ++i)
      wishes.push_back(sale_.buy(BuyerId{std::to_string(next_buyer_++)}, RequestId{"r"}, units));
    for (const auto& answer : when_all(std::move(wishes)).get()) ASSERT_EQ(answer.outcome, Outcome::admitted);
  }

  std::string name_ = testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string stream_ = "{" + name_ + "}:orders";
  std::unique_ptr<Store> store_ = open(test::shared_server().url());
  Sale sale_ = Sale::create(*store_, {.name = name_, .stock = 10'000}).get();
  test::TempDir folder_;
  std::string url_ = test::database_url(folder_);
  std::unique_ptr<OrderStore> orders_ = open_order_store(url_);
  int next_buyer_ = 0;
};

TEST_F(SaleWorker, BringsEveryOrderInAndForgetsTheEntries) {
  buy_many(2500);
  OrderWorker worker{*store_, sale_, *orders_, {.batch = 1000}};
  worker.drain();
  EXPECT_EQ(worker.progress().inserted, 2500U);
  EXPECT_EQ(sale_.status().get().waiting, 0);
  EXPECT_EQ(orders_->stock(name_)->left, 7500);
  EXPECT_EQ(store_->run({"XINFO", "CONSUMERS", stream_, "workers"}).get().as_items().size(), 0U) << "it left the group";
  test::expect_clean(sale_, *orders_);
}

TEST_F(SaleWorker, RunsUntilItIsStopped) {
  OrderWorker worker{*store_, sale_, *orders_, {.idle_wait = 50ms}};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  buy_many(300);
  while (sale_.status().get().waiting > 0) std::this_thread::yield();
  thread.request_stop();
  thread.join();
  EXPECT_EQ(worker.progress().inserted, 300U);
  test::expect_clean(sale_, *orders_);
}

}  // namespace
}  // namespace sluice
