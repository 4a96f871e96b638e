// The store goes away, comes back empty, or takes no writes, while buyers ask.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "server/curl.hpp"
#include "server/service.hpp"
#include "sluice/open.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/comes_true.hpp"
#include "support/redis_server.hpp"
#include "support/server_pair.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

class LostStore : public testing::Test {
 protected:
  ServiceOptions options() const {
    ServiceOptions options;
    options.shop.orders = "sqlite:" + (folder_ / "orders.db").string();
    options.shop.worker.claim_after = 100ms;
    options.shop.worker.longest_pause = 100ms;
    options.http.loops = 1;
    options.look_every = 50ms;
    return options;
  }
  void begin(std::vector<SaleDefinition> sales = {}) {
    service_ = std::make_unique<Service>(*store_, options(), sales);
  }
  test::Answer buy(std::string_view buyer) const {
    return test::ask(service_->port(), "POST", "/v1/sales/tea/orders",
                     {{"Sluice-Buyer", buyer}, {"Idempotency-Key", "k"}});
  }
  bool is_recorded(std::string_view buyer, const std::string& id) const {
    return test::ask(service_->port(), "GET", "/v1/sales/tea/orders/" + id,
                     {{"Sluice-Buyer", buyer}})
               .body.find("\"recorded\":true") != std::string::npos;
  }
  void take_store() {
    const auto orders = open_order_store(options().shop.orders);
    recover(*store_, "tea", *orders, {.new_store = true});
  }
  void expect_clean_audit() {
    const auto orders = open_order_store(options().shop.orders);
    auto sale = Sale::load(*store_, "tea").get();
    ASSERT_TRUE(sale);
    OrderWorker{*store_, *sale, *orders, {.claim_after = 1ms}}.drain();
    const auto found = audit(*store_, *sale, *orders);
    for (const auto& check : found.checks) EXPECT_TRUE(check.ok) << check.name << check.detail;
  }

  test::TempDir folder_;
  test::RedisServer redis_;
  std::unique_ptr<Store> store_ = open(redis_.url());
  std::unique_ptr<Service> service_;
};

const SaleDefinition tea{.name = "tea", .stock = 3, .number_type = "TEA"};

TEST_F(LostStore, SV02_ASaleThatWasFlushedIsSoldOnWhenAPersonSaysSoAndNotTwice) {
  begin({tea});
  const auto bought = buy("ann");
  ASSERT_EQ(bought.status, 201) << bought.body;
  ASSERT_TRUE(test::comes_true([&] { return is_recorded("ann", bought.text("id")); }));
  store_->run({"FLUSHALL"}).get();
  EXPECT_NE(buy("bob").status, 201) << "it may be another store";
  take_store();
  ASSERT_TRUE(test::comes_true([&] { return buy("ann").status == 200; }));
  EXPECT_EQ(buy("ann").text("id"), bought.text("id"));
  EXPECT_TRUE(test::comes_true([&] { return buy("bob").status == 201; })) << "the gate opens";
  EXPECT_EQ(buy("cid").status, 201);
  EXPECT_EQ(buy("dan").problem(), "sold-out");
  service_.reset();
  expect_clean_audit();
}

TEST_F(LostStore, AServiceThatBeginsAfterTheLossSellsWhatTheDatabaseKnowsWhenAPersonSaysSo) {
  begin({tea});
  const auto bought = buy("ann");
  ASSERT_TRUE(test::comes_true([&] { return is_recorded("ann", bought.text("id")); }));
  service_.reset();
  store_->run({"FLUSHALL"}).get();
  begin();  // nobody tells it what is sold
  EXPECT_NE(buy("bob").status, 201);
  take_store();
  ASSERT_TRUE(test::comes_true([&] { return buy("ann").status == 200; }));
  EXPECT_EQ(buy("ann").text("id"), bought.text("id"));
  service_.reset();
  expect_clean_audit();
}

TEST_F(LostStore, AStoreThatTakesNoWritesIsNotReady) {
  begin({tea});
  const auto ready = [&] { return test::ask(service_->health_port(), "GET", "/readyz").status; };
  EXPECT_EQ(ready(), 200);
  store_->run({"REPLICAOF", "127.0.0.1", "1"}).get();
  EXPECT_TRUE(test::comes_true([&] { return ready() == 503; }));
  const auto to_a_balancer = test::ask(service_->port(), "GET", "/readyz");
  EXPECT_EQ(to_a_balancer.status, 503) << "at the address that it sends buyers to";
  EXPECT_EQ(to_a_balancer.body.find("127.0.0.1"), std::string::npos) << to_a_balancer.body;
  EXPECT_EQ(buy("ann").status, 503);
  store_->run({"REPLICAOF", "NO", "ONE"}).get();
  EXPECT_TRUE(test::comes_true([&] { return ready() == 200; }));
  EXPECT_TRUE(test::comes_true([&] { return buy("ann").status == 201; }));
}

/// The server of the sale is lost, and a replica that has not heard of its latest second answers
/// in its place.
class FailedOver : public LostStore {
 protected:
  FailedOver() { store_ = open(servers_.url()); }

  test::ServerPair servers_;
};

TEST_F(FailedOver, V29_AFailoverThatLosesASecondShutsTheSaleAndSellsNothingTwice) {
  SaleDefinition sale = tea;
  sale.stock = 20;
  begin({sale});
  std::map<std::string, std::string> told;  // buyers and their orders
  const auto buy_as = [&](const std::string& buyer) {
    const auto answer = buy(buyer);
    EXPECT_EQ(answer.status, 201) << answer.body;
    told[buyer] = answer.text("id");
  };
  for (int i = 0; i < 5; ++i) buy_as(fmt::format("known to the replica {}", i));
  servers_.wait_for_copy_of("{tea}:buyers");
  servers_.cut_off();
  for (int i = 0; i < 5; ++i) buy_as(fmt::format("known to the primary {}", i));
  ASSERT_TRUE(test::comes_true([&] {
    return std::ranges::all_of(told,
                               [&](const auto& one) { return is_recorded(one.first, one.second); });
  }));
  servers_.replace_primary();

  // Nobody is admitted by the replica before it has heard from the database what it lacks.
  std::set<std::string> seen;
  ASSERT_TRUE(test::comes_true([&] {
    const auto answer = buy("after the failover");
    if (answer.status == 503) seen.insert(answer.problem());
    if (answer.status == 201) told["after the failover"] = answer.text("id");
    return answer.status == 201;
  }));
  for (const auto& problem : seen)
    EXPECT_TRUE(problem == "recovering" || problem == "store-failed") << problem;
  for (const auto& [buyer, order] : told) {
    const auto again = buy(buyer);
    EXPECT_EQ(again.status, 200) << buyer << ": " << again.body;
    EXPECT_EQ(again.text("id"), order) << buyer;
  }
  for (int i = 0; i < 9; ++i) buy_as(fmt::format("late {}", i));
  EXPECT_EQ(buy("too late").problem(), "sold-out");
  service_.reset();
  expect_clean_audit();
}

}  // namespace
}  // namespace sluice::server
