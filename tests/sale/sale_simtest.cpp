#include <gtest/gtest.h>

#include "engine/embedded_store.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// 23:59:57 in Shanghai on 2026-01-02.
constexpr WallTime before_midnight{1'767'369'597s};

class SaleOnVirtualTime : public testing::Test {
 protected:
  std::string buy(Sale& sale, const std::string& request = "r") {
    const auto answer =
        sale.buy(BuyerId{"buyer " + std::to_string(next_buyer_++)}, RequestId{request}).get();
    if (answer.order) last_ = *answer.order;
    return answer.order ? answer.order->number : std::string{to_string(answer.outcome)};
  }

  VirtualClock clock_{before_midnight};
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  int next_buyer_ = 0;
  SaleOrder last_;
};

TEST_F(SaleOnVirtualTime, NumbersBeginAnewAtMidnightAndIdsGoOn) {
  auto sale = Sale::create(*store_,
                           {.name = "s", .stock = 10, .number_type = "MT", .zone = "Asia/Shanghai"})
                  .get();
  EXPECT_EQ(buy(sale), "MT202601020001");
  EXPECT_EQ(buy(sale), "MT202601020002");
  clock_.advance(2'999'999us);
  EXPECT_EQ(buy(sale), "MT202601020003");
  const auto before = last_;
  EXPECT_EQ(before.issued_at, before_midnight + 2'999'999us);
  clock_.advance(1us);
  EXPECT_EQ(buy(sale), "MT202601030001");
  EXPECT_GT(last_.id, before.id);
  EXPECT_EQ(last_.issued_at, before_midnight + 3s);
  clock_.advance(24h);
  EXPECT_EQ(buy(sale), "MT202601040001");

  const auto orders = open_order_store("sqlite::memory:");
  OrderWorker{*store_, sale, *orders}.drain();
  for (const auto& check : audit(*store_, sale, *orders).checks)
    EXPECT_TRUE(check.ok) << check.name << ": " << check.detail;
}

TEST_F(SaleOnVirtualTime, TheFlowOfOrdersSaysHowOldTheOldestIsAndWhoHasWhat) {
  auto sale = Sale::create(*store_, {.name = "s", .stock = 10, .number_type = "MT"}).get();
  const auto still = sale.flow().get();
  EXPECT_EQ(still.entries, 0);
  EXPECT_FALSE(still.oldest);
  EXPECT_TRUE(still.workers.empty());
  buy(sale);
  clock_.advance(3s);
  buy(sale);
  store_->run({"XREADGROUP", "GROUP", "workers", "w1", "COUNT", "1", "STREAMS", "{s}:orders", ">"})
      .get();
  clock_.advance(2s);
  const auto flow = sale.flow().get();
  EXPECT_EQ(flow.entries, 2);
  EXPECT_EQ(flow.oldest, std::optional<std::chrono::milliseconds>{5s});
  ASSERT_EQ(flow.workers.size(), 1u);
  EXPECT_EQ(flow.workers.front().name, "w1");
  EXPECT_EQ(flow.workers.front().pending, 1);
  EXPECT_EQ(flow.workers.front().idle, 2s);
  EXPECT_TRUE(sale.flow(0).get().workers.empty());
  store_->run({"XGROUP", "DESTROY", "{s}:orders", "workers"}).get();
  EXPECT_EQ(sale.flow().get().entries, 2) << "without a group, too";
  store_->run({"DEL", "{s}:orders"}).get();
  EXPECT_EQ(sale.flow().get().entries, 0) << "and of a store that has lost it";
}

TEST_F(SaleOnVirtualTime, AnOrderIsFoundByItsRequestBeforeTheDatabaseHasIt) {
  auto sale =
      Sale::create(*store_, {.name = "s", .stock = 10, .limit = 2, .number_type = "MT"}).get();
  const BuyerId ann{"ann"};
  const auto first = sale.buy(ann, RequestId{"r1"}).get().order;
  const auto second = sale.buy(ann, RequestId{"r2"}, 2).get().order;
  ASSERT_TRUE(first && second);
  EXPECT_EQ(sale.find(ann, RequestId{"r1"}).get(), first);
  EXPECT_EQ(sale.find(ann, RequestId{"r2"}).get(), second);
  EXPECT_EQ(sale.latest(ann).get(), second);
  EXPECT_FALSE(sale.find(ann, RequestId{"r3"}).get());
  EXPECT_FALSE(sale.find(BuyerId{"bob"}, RequestId{"r1"}).get());
  EXPECT_FALSE(sale.latest(BuyerId{"bob"}).get());

  const auto orders = open_order_store("sqlite::memory:");
  sale.cancel(*orders, ann, RequestId{"r2"}, "changed her mind");
  EXPECT_EQ(sale.latest(ann).get()->state, OrderState::cancelled);
}

TEST_F(SaleOnVirtualTime, AClockThatGoesBackOpensNoDayAgain) {
  auto sale = Sale::create(*store_,
                           {.name = "s", .stock = 10, .number_type = "MT", .zone = "Asia/Shanghai"})
                  .get();
  clock_.advance(3s);
  EXPECT_EQ(buy(sale), "MT202601030001");
  const auto before = last_;
  clock_.jump_wall(-1h);
  EXPECT_EQ(buy(sale), "MT202601030002");
  EXPECT_GT(last_.id, before.id);
  EXPECT_GE(last_.issued_at, before.issued_at);
}

TEST_F(SaleOnVirtualTime, AYearLaterTheFirstCallFindsItsDay) {
  auto sale = Sale::create(*store_,
                           {.name = "s", .stock = 10, .number_type = "MT", .zone = "Asia/Shanghai"})
                  .get();
  EXPECT_EQ(buy(sale), "MT202601020001");
  clock_.advance(24h * 365);
  EXPECT_EQ(buy(sale), "MT202701020001");
}

TEST_F(SaleOnVirtualTime, TheWindowIsHalfOpen) {
  auto sale = Sale::create(*store_, {.name = "s",
                                     .stock = 10,
                                     .opens_at = before_midnight + 1s,
                                     .closes_at = before_midnight + 5s,
                                     .number_type = "MT",
                                     .zone = "Asia/Shanghai"})
                  .get();
  const auto expect = [&](SaleState state, const std::string& answer) {
    EXPECT_EQ(to_string(sale.status().get().state), to_string(state));
    EXPECT_EQ(buy(sale), answer);
  };
  expect(SaleState::not_started, "not started");
  clock_.advance(999'999us);
  expect(SaleState::not_started, "not started");
  clock_.advance(1us);
  expect(SaleState::open, "MT202601020001");
  clock_.advance(3'999'999us);
  expect(SaleState::open, "MT202601030001");
  clock_.advance(1us);
  expect(SaleState::closed, "closed");
}

TEST_F(SaleOnVirtualTime, ATypeOfNumbersBelongsToOneSale) {
  const auto define = [](std::string name) {
    return SaleDefinition{.name = std::move(name), .stock = 5, .number_type = "MT"};
  };
  auto first = Sale::create(*store_, define("first")).get();
  const auto refused = [&] {
    for (const bool check : {true, false}) {
      try {
        if (check)
          Sale::check(*store_, define("second")).get();
        else
          Sale::create(*store_, define("second")).get();
        ADD_FAILURE();
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::bad_argument);
        EXPECT_NE(error.message().find("'MT' is that of sale 'first'"), std::string::npos)
            << error.what();
      }
    }
    EXPECT_EQ(Sale::names(*store_).get().size(), 1U) << "nothing is written";
  };
  refused();
  Sale::create(*store_, define("first")).get();  // joins
  buy(first);
  const auto orders = open_order_store("sqlite::memory:");
  first.archive(*orders);
  refused();  // a number of today would be given twice
  clock_.advance(24h);
  auto second = Sale::create(*store_, define("second")).get();
  EXPECT_EQ(buy(second), "MT202601030001");
  Sale::create(*store_, define("first")).get();  // is over, and takes nothing back
  EXPECT_EQ(store_->run({"HGET", "sluice:sales:types", "MT"}).get().as_text(), "second");
  OrderWorker{*store_, second, *orders}.drain();
  EXPECT_TRUE(audit(*store_, second, *orders).ok());

  store_->run({"DEL", "{second}:sale"}).get();  // is gone, whoever did that
  Sale::create(*store_, define("third")).get();
}

TEST_F(SaleOnVirtualTime, ZonesDecideTheDay) {
  auto here =
      Sale::create(*store_,
                   {.name = "here", .stock = 1, .number_type = "MT", .zone = "Europe/Berlin"})
          .get();
  auto there =
      Sale::create(*store_,
                   {.name = "there", .stock = 1, .number_type = "AP", .zone = "Pacific/Apia"})
          .get();
  EXPECT_EQ(buy(here), "MT202601020001");
  EXPECT_EQ(buy(there), "AP202601030001");
}

}  // namespace
}  // namespace sluice
