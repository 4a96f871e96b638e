// Stores and databases that do not answer, and services of many sales.
#include <sqlite3/soci-sqlite3.h>

#include <filesystem>
#include <latch>
#include <thread>

#include "engine/log/memory_disk.hpp"
#include "sale/sql/soci.hpp"
#include "server/operate_fixture.hpp"
#include "server/problems.hpp"
#include "support/collected_log.hpp"
#include "support/faulty_store.hpp"

namespace sluice::server {
namespace {

class Standstill : public ShopTest {};

/// How often this process has the file open.
std::ptrdiff_t descriptors_of(const std::filesystem::path& file) {
  std::ptrdiff_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone) == file;
  }
  return count;
}

TEST_F(Standstill, SessionsWithTheDatabaseAreNotOneASale) {
  const auto sessions_of = [&](int sales) {
    std::vector<SaleDefinition> all;
    for (int i = 0; i < sales; ++i)
      all.push_back(
          {.name = fmt::format("s{}", i), .stock = 2, .number_type = fmt::format("S{}", i)});
    begin(all);
    const auto buyer = fmt::format("{} sales", sales);
    for (const auto& sale : all) EXPECT_EQ(buy(buyer, "k", {}, sale.name).status, 201);
    const auto orders = open_order_store(options().shop.orders);
    for (const auto& sale : all)
      EXPECT_TRUE(test::comes_true([&] { return orders->totals(sale.name).orders >= 1; }));
    return descriptors_of(folder_ / "orders.db");
  };
  const auto of_two = sessions_of(2);
  EXPECT_LE(sessions_of(20), of_two);
}

TEST_F(Standstill, S1_WhatTheDiskOfTheStoreRefusesIsNoMistakeOfABuyerAndPasses) {
  const test::CollectedLog log;
  for (const int error : {EROFS, EIO}) {
    engine::test::MemoryDisk disk;
    service_.reset();
    store_ = engine::open_embedded({}, disk.folder());
    auto how = of_this_machine();
    how.shop.orders = "sqlite:" + (folder_ / fmt::format("orders{}.db", error)).string();
    begin({tea(9)}, std::move(how));
    const auto sold = fmt::format("{} ", error);
    EXPECT_EQ(buy(sold + "a", "k").status, 201);
    disk.fail(disk.operations(), error, true);
    for (const auto& answer :
         {buy(sold + "b", "k"), buy(sold + "c", "k"), ask("GET", "/v1/sales/tea/orders/1"),
          ask("POST", "/v1/locks/L", {{"Idempotency-Key", "1"}}, "{}"),
          ask("POST", "/v1/series/S/next", {{"Idempotency-Key", "1"}}, "{}")}) {
      EXPECT_TRUE(answer.problem() == "store-failed" || answer.problem() == "effect-unknown" ||
                  answer.problem() == "unknown-buyer")
          << answer.body;
      EXPECT_EQ(answer.body.find("appendonly"), std::string::npos) << answer.body;
    }
    disk.heal();
    EXPECT_TRUE(test::comes_true([&] { return buy(sold + "c", "k").status == 201; }));
    EXPECT_EQ(service_->shop().find("tea")->trouble(), "") << "its worker goes on";
    EXPECT_TRUE(test::comes_true([&] {
      return service_->shop().trouble(Needed::store).empty() &&
             service_->shop().trouble(Needed::database).empty();
    }));
    service_.reset();  // before its disk
    store_ = engine::open_embedded();
  }
  EXPECT_EQ(log.count("its worker ended"), 0U) << log.text();
}

TEST_F(Standstill, WhatIsDamagedIsOfTheStoreOrOfTheDatabaseWhereItLies) {
  begin({tea(9)});
  const auto order = buy("ann", "k");
  const auto path = "/v1/sales/tea/orders/" + order.text("id");
  const auto show = [&] { return ask("GET", path, {{"Sluice-Buyer", "ann"}}); };
  constexpr std::string_view recorded = "\"recorded\":true";
  EXPECT_TRUE(test::comes_true([&] { return show().body.find(recorded) != std::string::npos; }))
      << show().body;
  soci::session sql{soci::sqlite3, "db=" + (folder_ / "orders.db").string() + " timeout=10"};
  sql << "UPDATE sale_orders SET state = 'shipped'";
  EXPECT_EQ(show().problem(), "database-failed") << show().body;
  store_->run({"HSET", "{tea}:sale", "taken", "a text"}).get();
  const auto bought = buy("bob", "k");
  EXPECT_EQ(bought.problem(), "store-failed") << bought.body;
}

TEST_F(Standstill, AStoreThatNeverAnswersIsSaid) {
  begin({tea(3)});
  service_.reset();
  test::FaultyStore store{*store_};
  std::latch go_on{1};
  std::atomic<bool> stands_still{false};
  store.plan = [&](std::string_view command) {
    if (command == "SET" && stands_still) go_on.wait();
    return test::Fault::none;
  };
  auto how = options();
  how.shop.patience = 1ms;
  Shop shop{store, how.shop};
  shop.look();
  EXPECT_EQ(shop.trouble(Needed::store), "");
  stands_still = true;
  std::jthread looker{[&] { shop.look(); }};
  EXPECT_TRUE(test::comes_true(
      [&] { return shop.trouble(Needed::store).find("has not answered") != std::string::npos; }));
  go_on.count_down();
  looker.join();
  EXPECT_EQ(shop.trouble(Needed::store), "");
  EXPECT_EQ(shop.trouble(Needed::database), "");
}

// A request that is under way as the service ends may be the last to let an offer go, in a thread
// of the worker: that cannot wait for itself, and the database of the shop is gone.
TEST_F(Standstill, AnOfferThatIsHeldForLongerThanItsShopHasNoWorker) {
  begin({tea(3)});
  service_.reset();
  test::FaultyStore store{*store_};
  std::atomic<bool> is_over{false};
  std::atomic<int> calls{0};
  store.plan = [&](std::string_view) {
    calls += is_over ? 1 : 0;
    return test::Fault::none;
  };
  auto how = options();
  how.shop.worker.idle_wait = 5ms;
  std::shared_ptr<Offer> held;
  {
    const Shop shop{store, how.shop};
    held = shop.find("tea");
  }
  ASSERT_TRUE(held);
  is_over = true;
  std::this_thread::sleep_for(100ms);  // twenty times what a worker waits for orders
  EXPECT_EQ(calls, 0);
}

TEST_F(Standstill, TheListOfSalesAsksTheStoreOfAllAtOnce) {
  constexpr std::size_t count = 5;
  std::vector<SaleDefinition> sales;
  for (std::size_t i = 0; i < count; ++i)
    sales.push_back(
        {.name = fmt::format("s{}", i), .stock = 2, .number_type = fmt::format("S{}", i)});
  test::FaultyStore store{*store_};
  std::atomic<bool> is_slow{false};
  store.plan = [&](std::string_view call) {  // the status of a sale begins with the time
    return is_slow && call == "TIME" ? test::Fault::reply_late : test::Fault::none;
  };
  Service service{store, options(), sales};
  is_slow = true;
  const auto before = store.executed("TIME");
  std::jthread asks{[&] { EXPECT_EQ(test::ask(service.port(), "GET", "/v1/sales").status, 200); }};
  EXPECT_TRUE(test::comes_true([&] { return store.executed("TIME") >= before + count; }))
      << store.executed("TIME") - before << " asked while none had an answer";
  is_slow = false;
  store.let_go();
}

// A worker that begins after a trouble is the only one, and what it does is shown.
TEST_F(Standstill, H1_AfterEachTroubleTheFiguresOfTheWorkerMove) {
  auto how = options();
  how.shop.worker.claim_after = 20ms;  // a worker compares its sale with the database so often
  begin({tea(100)}, how);
  const auto offer = service_->shop().find("tea");
  soci::session sql{soci::sqlite3, "db=" + (folder_ / "orders.db").string() + " timeout=10"};
  std::uint64_t bought = 0;
  for (int trouble = 0; trouble < 3; ++trouble) {
    sql << "UPDATE sale_stock SET initial = 99";
    ASSERT_TRUE(test::comes_true([&] { return !offer->trouble().empty(); }));
    sql << "UPDATE sale_stock SET initial = 100";
    ASSERT_TRUE(test::comes_true([&] { return offer->trouble().empty(); }));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(buy(fmt::format("b{}", bought), "k").status, 201);
      ++bought;
      EXPECT_TRUE(test::comes_true([&] { return offer->progress().inserted == bought; }))
          << offer->progress().inserted << " of " << bought;
    }
    EXPECT_EQ(offer->trouble(), "");
  }
}

TEST_F(Standstill, H1_AfterEachTroubleTheFiguresOfAWorkerMoveAndItIsAlone) {
  begin({tea(100, 0)});
  const auto offer = service_->shop().find("tea");
  std::uint64_t bought = 0;
  const auto sell = [&] {
    EXPECT_EQ(buy("ann", fmt::format("k{}", ++bought)).status, 201);
    EXPECT_TRUE(test::comes_true([&] { return offer->progress().inserted == bought; })) << bought;
  };
  const auto consumer = [&] {
    const auto all = store_->run({"XINFO", "CONSUMERS", "{tea}:orders", "workers"}).get();
    EXPECT_EQ(all.as_items().size(), 1U);
    return all.as_items().at(0).as_items().at(1).as_text();
  };
  for (int trouble = 0; trouble < 3; ++trouble) {
    sell();
    store_->run({"SET", "{tea}:orders", "no stream"}).get();
    EXPECT_TRUE(test::comes_true([&] { return !offer->trouble().empty(); }));
    store_->run({"DEL", "{tea}:orders"}).get();
    EXPECT_TRUE(test::comes_true([&] { return offer->trouble().empty(); }));
    sell();
    const auto works = consumer();
    for (int more = 0; more < 3; ++more) sell();
    EXPECT_EQ(consumer(), works) << "the worker that is well goes on";
    EXPECT_EQ(offer->trouble(), "");
  }
}

class OperatorsStandstill : public OperateTest {};

TEST_F(OperatorsStandstill, WhatNeedsNoDatabaseDoesNotWaitForIt) {
  begin({paid_tea(9)}, with_keys());
  soci::session other{soci::sqlite3, (folder_ / "orders.db").string()};
  other << "BEGIN IMMEDIATE";
  std::jthread waits{[&] { post("/v1/operate/sales/tea/messages/replay"); }};
  EXPECT_TRUE(test::comes_true([&] {
    const auto journal = get("/v1/operate/journal").json();
    const auto& entries = *journal.find("entries")->as_array();
    return !entries.empty() && *entries.front().find("outcome")->as_text() == "begun";
  })) << "the journal is answered while the same operator waits for the database";
  other << "ROLLBACK";
}

TEST(Problems, WhatOnlyReadsHasNoUnknownEffect) {
  const Error late{Errc::database, "late", Effect::unknown};
  EXPECT_TRUE(problem_of(late).body.contains("effect-unknown"));
  EXPECT_TRUE(problem_of_read(late).body.contains("database-failed"));
}

}  // namespace
}  // namespace sluice::server
