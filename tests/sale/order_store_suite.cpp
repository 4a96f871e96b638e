#include "sale/order_store_suite.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <thread>

#include "sluice/clock.hpp"

namespace sluice {
namespace {

TEST_P(OrderStoreSuite, KeepsWhatItWasGiven) {
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

TEST_P(OrderStoreSuite, TakesARepeatForWhatItIs) {
  insert({order(1, "ann"), order(2, "bob")});
  const auto result = insert({order(1, "ann"), order(3, "cid"), order(2, "bob")});
  EXPECT_EQ(result.inserted, 1U);
  EXPECT_EQ(result.repeated, 2U);
  EXPECT_TRUE(result.rejected.empty());
  EXPECT_EQ(orders_->stock("s")->left, 7);
}

TEST_P(OrderStoreSuite, RejectsWhatBelongsToAnother) {
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

TEST_P(OrderStoreSuite, NeverSellsMoreThanItsStock) {
  const auto result = insert({order(1, "ann", 1, 6), order(2, "bob", 1, 5), order(3, "cid", 1, 4)});
  EXPECT_EQ(result.inserted, 2U);
  ASSERT_EQ(result.rejected.size(), 1U);
  EXPECT_EQ(result.rejected[0].index, 1U);
  EXPECT_EQ(result.rejected[0].reason, "the database has 4 units left, the order has 5");
  EXPECT_EQ(orders_->stock("s")->left, 0);
  EXPECT_EQ(orders_->page("s", 0, 10).size(), 2U);
}

TEST_P(OrderStoreSuite, CountsBuyersAboveALimit) {
  insert({order(1, "ann", 1), order(2, "ann", 2), order(3, "bob", 1)});
  EXPECT_EQ(orders_->buyers_above("s", 1), 1);
  EXPECT_EQ(orders_->buyers_above("s", 2), 0);
}

TEST_P(OrderStoreSuite, NamesItsSales) {
  orders_->add_sale("tea \xff", 2);
  orders_->add_sale("maotai", 1);
  EXPECT_EQ(orders_->sales(), (std::vector<std::string>{"maotai", "s", "tea \xff"}));
}

TEST_P(OrderStoreSuite, SalesDoNotMix) {
  orders_->add_sale("t", 5);
  insert({order(1, "ann")});
  EXPECT_EQ(orders_->insert("t", std::vector<SaleOrder>{order(1, "ann")}).inserted, 1U);
  EXPECT_EQ(orders_->stock("t")->left, 4);
  EXPECT_EQ(orders_->stock("s")->left, 9);
}

TEST_P(OrderStoreSuite, ComparesTheStockOfASale) {
  orders_->add_sale("s", 10);
  try {
    orders_->add_sale("s", 11);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch);
  }
}

TEST_P(OrderStoreSuite, ADatabaseKeepsItsIdentity) {
  const auto identity = orders_->identity();
  EXPECT_EQ(identity.size(), 32U);
  EXPECT_EQ(open_order_store(url_)->identity(), identity);
  EXPECT_NE(open_order_store(GetParam().make())->identity(), identity);
}

class StoresOfASale : public OrderStoreSuite {
 protected:
  template <class Deed>
  void expect_refused(Errc code, const std::vector<std::string>& named, const Deed& deed) {
    try {
      deed();
      ADD_FAILURE() << "it was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), code) << error.what();
      EXPECT_EQ(error.effect(), Effect::none) << error.what();
      for (const auto& name : named)
        EXPECT_NE(error.message().find(name), std::string::npos) << error.what();
    }
  }

  const StoreOfSale first_{.id = std::string(32, 'a'), .place = "redis://one"};
  const StoreOfSale second_{.id = std::string(32, 'b'), .place = "redis://two"};
};

TEST_P(StoresOfASale, SV02_TheDatabaseKnowsItsStoreAndFencesTheOneOfBefore) {
  EXPECT_EQ(orders_->store_of("s")->id, "") << "as in a database of an older version";
  EXPECT_FALSE(orders_->store_of("other"));
  ASSERT_TRUE(orders_->sell_in("s", first_, ""));
  insert({order(1, "ann")});
  const auto next = open_order_store(url_);
  EXPECT_EQ(next->store_of("s")->id, first_.id);
  EXPECT_EQ(next->store_of("s")->place, "redis://one");
  EXPECT_GT(next->store_of("s")->since, WallTime{});
  expect_refused(Errc::config_mismatch, {"redis://one", "redis://two", "--new-store"}, [&] {
    next->sell_in("s", second_, "");
    next->keep_definition("s", {});
  });

  const auto epoch = next->begin_epoch("s", 0, second_, "token");
  EXPECT_EQ(next->epoch_token("s"), "token");
  EXPECT_EQ(next->store_of("s")->epoch, epoch);
  const std::vector<std::function<void()>> deeds{
      [&] { insert({order(2, "bob")}); },
      [&] { orders_->insert("s", std::vector{order(2, "bob")}, epoch); },
      [&] { orders_->end_order("s", 1, OrderState::cancelled, ""); },
      [&] { orders_->insert_ended("s", order(2, "bob"), OrderState::cancelled, "", epoch); },
      [&] { orders_->begin_stock_change("s", 20); },
      [&] { orders_->payments().cancel_units("s", 1, 1, "key", ""); },
      [&] {
        orders_->keep_definition("s", {{"closed", "1"}});
      }};
  EXPECT_EQ(orders_->sold_elsewhere(), std::vector<std::string>{"s"});
  EXPECT_TRUE(next->sold_elsewhere().empty());
  for (const auto& deed : deeds)
    expect_refused(Errc::config_mismatch, {"redis://one", "redis://two", "since"}, deed);
  EXPECT_EQ(next->insert("s", std::vector{order(2, "bob")}, epoch).inserted, 1U);
  EXPECT_EQ(next->stock("s")->left, 8);
}

TEST_P(StoresOfASale, SV02_AnIdIsRenewedFromTheOneOfBeforeAndFencesIt) {
  ASSERT_TRUE(orders_->sell_in("s", first_, ""));
  insert({order(1, "ann")});
  const auto next = open_order_store(url_);
  EXPECT_FALSE(next->renew_store("s", std::string(32, 'c'), second_));
  EXPECT_EQ(next->store_of("s")->id, first_.id);
  for (int times = 0; times < 2; ++times) {
    EXPECT_TRUE(next->renew_store("s", first_.id, second_));
    EXPECT_EQ(next->store_of("s")->id, second_.id);
  }
  expect_refused(Errc::config_mismatch, {"--new-store"}, [&] { insert({order(2, "bob")}); });
  ASSERT_TRUE(next->sell_in("s", second_, ""));
  EXPECT_EQ(next->insert("s", std::vector{order(2, "bob")}).inserted, 1U);
}

TEST_P(StoresOfASale, SV18_ADatabaseThatWasRolledBackIsNoticedAtTheNextCommit) {
  ASSERT_TRUE(orders_->sell_in("s", first_, ""));
  insert({order(1, "ann")});
  const auto mark = orders_->mark("s");
  insert({order(2, "bob")});
  EXPECT_GT(orders_->mark("s"), mark);
  GetParam().run(url_, "UPDATE sale_stock SET commits = 0");
  expect_refused(Errc::database, {"sluice sale recover s"}, [&] { insert({order(3, "cid")}); });
  EXPECT_FALSE(open_order_store(url_)->sell_in("s", first_, mark)) << "and by the next process";
  const auto epoch = orders_->begin_epoch("s");
  EXPECT_TRUE(orders_->sell_in("s", first_, mark));
  EXPECT_EQ(orders_->insert("s", std::vector{order(3, "cid")}, epoch).inserted, 1U);
}

// A program of before runs on while a newer one opens the database, and changes its tables.
TEST_P(StoresOfASale, SQ07_AProgramOfBeforeStopsAtItsNextCommit) {
  insert({order(1, "ann", 1, 2)});
  GetParam().run(url_, "INSERT INTO sale_schema (version) VALUES (1000)");
  auto& money = orders_->payments();
  const Payment payment{.provider = "acme",
                        .event = "e",
                        .sale = "s",
                        .order = order(1, "ann").number,
                        .amount = 1,
                        .currency = "EUR"};
  const std::vector<std::function<void()>> deeds{
      [&] { insert({order(2, "bob")}); },
      [&] {
        insert({order(1, "ann", 1, 2), order(2, "bob")});
      },
      [&] { orders_->insert_ended("s", order(2, "bob"), OrderState::cancelled, "", 0); },
      [&] { orders_->end_order("s", 1, OrderState::cancelled, ""); },
      [&] { orders_->begin_stock_change("s", 20); },
      [&] { orders_->begin_epoch("s"); },
      [&] { orders_->sell_in("s", first_, ""); },
      [&] { money.keep(payment); },
      [&] { money.apply(payment); },
      [&] { money.cancel_units("s", 1, 1, "key", ""); },
      [&] {
        orders_->keep_definition("s", {{"closed", "1"}});
      }};
  for (const auto& deed : deeds)
    expect_refused(Errc::config_mismatch, {"version 1000", "newer Sluice"}, deed);
  EXPECT_EQ(orders_->page("s", 0, 10).size(), 1U) << "it may read";
  EXPECT_EQ(orders_->stock("s")->left, 8);
  GetParam().run(url_, "DELETE FROM sale_schema WHERE version = 1000");
  for (const auto& deed : deeds) EXPECT_NO_THROW(deed());
}

TEST_P(OrderStoreSuite, AnEpochIsAboveThoseThatTheStoreKnows) {
  orders_->add_sale("s", 10);
  EXPECT_EQ(orders_->begin_epoch("s"), 1);
  EXPECT_EQ(orders_->begin_epoch("s", 5), 6);
  EXPECT_EQ(orders_->begin_epoch("s", 5), 7);
}

TEST_P(OrderStoreSuite, AChangeOfTheStockThatItLostIsNoted) {
  insert({order(1, "ann", 1, 4)});
  orders_->note_stock_change("s", 3, 20);
  EXPECT_EQ(orders_->last_stock_change("s"), 3);
  EXPECT_EQ(orders_->stock("s")->left, 16);
  orders_->note_stock_change("s", 3, 30);
  EXPECT_EQ(orders_->stock("s")->left, 16) << "it is known";
  ASSERT_TRUE(orders_->begin_stock_change("s", 25));
  orders_->note_stock_change("s", 5, 7);
  EXPECT_FALSE(orders_->pending_stock_change("s"));
  EXPECT_EQ(orders_->stock("s")->left, 3);
  EXPECT_EQ(orders_->totals("s").changes, orders_->stock("s")->changed);
  EXPECT_THROW(orders_->note_stock_change("s", 6, 3), Error) << "4 are sold";
  EXPECT_EQ(orders_->last_stock_change("s"), 5);
}

TEST_P(OrderStoreSuite, TellsWhichOrdersItCanNeverTake) {
  insert({order(1, "ann", 1, 1), order(2, "bob", 1, 1)});
  auto same = order(1, "ann", 1, 1);
  same.state = OrderState::cancelled;
  auto number = order(3, "cid", 1, 1);
  number.number = same.number;
  auto request = order(3, "ann", 2, 1);
  request.request = same.request;
  const std::vector<SaleOrder> all{
      same,    order(3, "cid", 1, 1), number, order(2, "cid", 1, 1), order(3, "ann", 1, 1),
      request, order(3, "ann", 2, 1)};
  EXPECT_EQ(orders_->are_taken("s", all),
            (std::vector<bool>{false, false, true, true, true, true, false}));
}

TEST_P(OrderStoreSuite, AnOrderThatEndedBeforeItCameTakesNothingOffTheStock) {
  insert({order(1, "ann", 1, 9)});
  const auto late = order(2, "bob", 1, 5);
  const auto ended = [&](const SaleOrder& one, std::int64_t epoch = 0) {
    return orders_->insert_ended("s", one, OrderState::cancelled, "no units", epoch);
  };
  EXPECT_TRUE(ended(late, 1).stale);
  EXPECT_EQ(orders_->page("s", 0, 10).size(), 1U);
  EXPECT_EQ(ended(late).inserted, 1U);
  EXPECT_EQ(ended(late).repeated, 1U);
  EXPECT_EQ(ended(order(3, "ann", 1, 1)).rejected.size(), 1U) << "the place of another order";
  EXPECT_EQ(orders_->stock("s")->left, 1);
  EXPECT_EQ(orders_->find_number("s", late.number)->state, OrderState::cancelled);
  EXPECT_EQ(orders_->reasons("s", std::span{&late.id, 1}).front(), "no units");
  const auto returns = orders_->returns("s", 0, 10, true);
  ASSERT_EQ(returns.size(), 1U);
  EXPECT_EQ(returns.front().units, 5);
  EXPECT_EQ(orders_->totals("s").odd, 0);
  const auto worker = orders_->insert("s", std::span{&late, 1}, 0);
  EXPECT_EQ(worker.repeated, 1U) << "a worker that has it takes it for brought in";
}

TEST_P(OrderStoreSuite, AnOrderEndsOnceAndGivesItsUnitsBack) {
  insert({order(1, "ann", 1, 3), order(2, "bob", 1, 2)});
  EXPECT_FALSE(orders_->end_order("s", 7, OrderState::cancelled, "").order);
  const auto ended = orders_->end_order("s", 1, OrderState::cancelled, "because\nof ü");
  EXPECT_TRUE(ended.now);
  EXPECT_EQ(ended.order->state, OrderState::cancelled);
  const auto again = open_order_store(url_)->end_order("s", 1, OrderState::cancelled, "other");
  EXPECT_FALSE(again.now);
  EXPECT_EQ(again.order, ended.order);
  EXPECT_EQ(again.reason, "because\nof ü");
  const std::int64_t ids[] = {2, 7, 1};
  EXPECT_EQ(orders_->reasons("s", ids), (std::vector<std::string>{"", "", "because\nof ü"}));
  EXPECT_EQ(orders_->stock("s")->left, 8);
  EXPECT_EQ(orders_->page("s", 0, 10).front().state, OrderState::cancelled);
  EXPECT_EQ(orders_->find_number("s", ended.order->number), ended.order);
  EXPECT_FALSE(orders_->find_number("s", "MT0"));

  auto returns = orders_->returns("s", 0, 10, true);
  ASSERT_EQ(returns.size(), 1U);
  EXPECT_EQ(returns[0].order, ended.order);
  EXPECT_EQ(returns[0].units, 3);
  orders_->return_done("s", 1, 1);
  EXPECT_TRUE(orders_->returns("s", 0, 10, true).empty());
  ASSERT_EQ(orders_->returns("s", 0, 10, false).size(), 1U);
  EXPECT_TRUE(orders_->returns("s", 0, 10, false)[0].done);

  // The stream may bring it once more.
  const auto result = insert({order(1, "ann", 1, 3)});
  EXPECT_EQ(result.repeated, 1U);
  EXPECT_EQ(orders_->stock("s")->left, 8);
}

TEST_P(OrderStoreSuite, CountsNoOrderThatEndedAgainstALimit) {
  insert({order(1, "ann", 1), order(2, "ann", 2)});
  EXPECT_EQ(orders_->buyers_above("s", 1), 1);
  orders_->end_order("s", 1, OrderState::cancelled, "");
  EXPECT_EQ(orders_->buyers_above("s", 1), 0);
}

TEST_P(OrderStoreSuite, ChangesOfTheStockComeOneAfterAnother) {
  insert({order(1, "ann", 1, 4)});
  EXPECT_FALSE(orders_->begin_stock_change("s", 10)) << "it has 10";
  const auto more = orders_->begin_stock_change("s", 15);
  EXPECT_EQ(more->delta, 5);
  EXPECT_TRUE(more->now);
  EXPECT_EQ(orders_->stock("s")->left, 11) << "at once";
  const auto other = orders_->begin_stock_change("s", 3);
  EXPECT_EQ(other->seq, more->seq);
  EXPECT_FALSE(other->now) << "that of another process, to be ended first";
  orders_->end_stock_change("s", more->seq, true);
  orders_->end_stock_change("s", more->seq, true);
  const auto fewer = orders_->begin_stock_change("s", 4);
  EXPECT_EQ(fewer->delta, -11);
  EXPECT_EQ(orders_->stock("s")->left, 11) << "when it ends";
  orders_->end_stock_change("s", fewer->seq, true);
  EXPECT_EQ(orders_->stock("s")->left, 0);
  EXPECT_EQ(orders_->stock("s")->initial, 10);
  EXPECT_EQ(orders_->stock("s")->changed, -6);
  const auto refused = orders_->begin_stock_change("s", 1);
  orders_->end_stock_change("s", refused->seq, false);
  EXPECT_EQ(orders_->stock("s")->changed, -6);
  EXPECT_FALSE(orders_->pending_stock_change("s"));
  orders_->add_sale("s", 10);  // what it was defined with
}

TEST_P(OrderStoreSuite, ARequestHasOneOrder) {
  insert({order(1, "ann")});
  auto again = order(2, "ann", 2);
  again.request = order(1, "ann").request;
  auto of_another = order(3, "bob");
  of_another.request = again.request;
  const auto result = insert({again, of_another});
  EXPECT_EQ(result.inserted, 1U) << "a request is its buyer's";
  ASSERT_EQ(result.rejected.size(), 1U);
  EXPECT_EQ(result.rejected[0].index, 0U);
  EXPECT_EQ(orders_->stock("s")->left, 8);
  EXPECT_EQ(orders_->find_request("s", {"ann"}, again.request)->id, 1);
}

// SOCI #910: a statement that was prepared once sends its first values again on PostgreSQL and
// MySQL.
TEST_P(OrderStoreSuite, V26_TheSecondBatchHasItsOwnValues) {
  orders_->add_sale("large", 10'000);
  for (std::int64_t batch = 0; batch < 3; ++batch) {
    const auto given = orders_from(1 + batch * 100, 100);
    EXPECT_EQ(orders_->insert("large", given).inserted, 100U);
    EXPECT_EQ(orders_->page("large", batch * 100, 200), given);
  }
  EXPECT_EQ(orders_->stock("large")->left, 9'700);
}

TEST_P(OrderStoreSuite, V25_TwoWorkersWithTheSameBatchesBringThemInOnce) {
  constexpr std::int64_t batches = 20, size = 50;
  orders_->add_sale("large", batches * size);
  const auto deadlocks = GetParam().deadlocks(url_);
  std::atomic<std::size_t> inserted = 0, repeated = 0, rejected = 0;
  std::latch begin{2};
  const auto work = [&] {
    const auto own = open_order_store(url_);
    begin.arrive_and_wait();
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      const auto result = own->insert("large", orders_from(1 + batch * size, size));
      inserted += result.inserted;
      repeated += result.repeated;
      rejected += result.rejected.size();
    }
  };
  std::jthread other{work};
  work();
  other.join();
  EXPECT_EQ(GetParam().deadlocks(url_), deadlocks);
  EXPECT_EQ(inserted, std::size_t{batches * size});
  EXPECT_EQ(repeated, std::size_t{batches * size});
  EXPECT_EQ(rejected, 0U);
  EXPECT_EQ(orders_->stock("large")->left, 0);
  EXPECT_EQ(orders_->page("large", 0, 2000), orders_from(1, batches * size));
}

// As when an order is cancelled while the stream brings it once more.
TEST_P(OrderStoreSuite, OrdersEndWhileOthersComeIn) {
  constexpr std::int64_t size = 100;
  orders_->add_sale("large", size);
  orders_->insert("large", orders_from(1, size / 2));
  std::jthread ends{[&] {
    const auto own = open_order_store(url_);
    for (std::int64_t id = 1; id <= size / 2; ++id)
      EXPECT_TRUE(own->end_order("large", id, OrderState::cancelled, "late").now);
  }};
  for (std::int64_t id = 1; id <= size; id += 5)
    EXPECT_TRUE(orders_->insert("large", orders_from(id, 5)).rejected.empty());
  ends.join();
  EXPECT_EQ(orders_->stock("large")->left, size / 2);
  const auto totals = orders_->totals("large");
  EXPECT_EQ(totals.orders, size);
  EXPECT_EQ(totals.units, size / 2);
  EXPECT_EQ(totals.odd, 0);
  EXPECT_EQ(totals.odd_returns, 0);
}

TEST_P(OrderStoreSuite, TextsThatLookAlikeAreNotTheSame) {
  orders_->add_sale("large", 100);
  std::vector<SaleOrder> given;
  for (const auto* const buyer : {"ann", "ann ", "Ann", "a\"n\\n'", "{ann,NULL}", "\u00e4nn",
                                  "a\u0308nn", ":ann", "NULL", "\xf0\x9f\x98\x80"})
    given.push_back(order(static_cast<std::int64_t>(given.size()) + 1, buyer));
  EXPECT_EQ(orders_->insert("large", given).inserted, given.size());
  EXPECT_EQ(orders_->page("large", 0, 100), given);
  for (const auto& one : given)
    EXPECT_EQ(orders_->find_request("large", one.buyer, one.request), one);
  orders_->add_sale("s ", 3);
  EXPECT_EQ(orders_->stock("s")->initial, 10);
  EXPECT_EQ(orders_->stock("s ")->initial, 3);
}

TEST_P(OrderStoreSuite, AddsUpABuyer) {
  insert({order(1, "ann", 1, 2), order(2, "ann", 2, 3), order(3, "bob")});
  orders_->end_order("s", 1, OrderState::cancelled, "");
  const std::vector<BuyerId> buyers{{"ann"}, {"cid"}};
  const auto totals = orders_->totals("s", buyers);
  ASSERT_EQ(totals.size(), 1U);
  EXPECT_EQ(totals[0].buyer, BuyerId{"ann"});
  EXPECT_EQ(totals[0].orders, 2);
  EXPECT_EQ(totals[0].live, 1);
  EXPECT_EQ(totals[0].units, 3);
}

TEST_P(OrderStoreSuite, KeepsTheFirstDefinition) {
  EXPECT_TRUE(orders_->definition("other").empty());
  orders_->keep_definition("s", {{"limit", "1"}, {"zone", "Europe/Berlin"}});
  orders_->keep_definition("s", {{"limit", "2"}, {"opens", "%"}});
  orders_->change_definition("s", "zone", "UTC");
  auto fields = orders_->definition("s");
  std::ranges::sort(fields);
  EXPECT_EQ(fields, (OrderStore::Fields{{"limit", "1"}, {"opens", "%"}, {"zone", "UTC"}}));
}

TEST_P(OrderStoreSuite, WhatTheDatabaseRefusesIsOneOrderAlone) {
  auto too_long = order(2, std::string(5000, 'b'));
  too_long.units = 0;  // a CHECK refuses it everywhere, its length where a column has one
  const auto result = insert({order(1, "ann"), too_long, order(3, "cid")});
  EXPECT_EQ(result.inserted, 2U);
  ASSERT_EQ(result.rejected.size(), 1U);
  EXPECT_EQ(result.rejected[0].index, 1U);
  EXPECT_NE(result.rejected[0].reason.find("the database refused it"), std::string::npos);
  EXPECT_EQ(orders_->stock("s")->left, 8);
}

TEST_P(OrderStoreSuite, OneOfThoseWhoOpenItAtOnceMakesTheTables) {
  const auto fresh = GetParam().make();
  constexpr int many = 4;
  std::latch begin{many};
  std::vector<std::jthread> openers;
  for (int i = 0; i < many; ++i)
    openers.emplace_back([&, i] {
      begin.arrive_and_wait();
      const auto own = open_order_store(fresh);
      own->add_sale("s", many);
      EXPECT_EQ(own->insert("s", std::vector{order(i + 1, "b" + std::to_string(i))}).inserted, 1U);
    });
  openers.clear();
  EXPECT_EQ(open_order_store(fresh)->stock("s")->left, 0);
}

TEST_P(OrderStoreSuite, H5_ManyThreadsUseOneStore) {
  constexpr int many = 12;
  orders_->add_sale("large", many * 10);
  std::vector<std::jthread> users;
  for (int user = 0; user < many; ++user)
    users.emplace_back([&, user] {
      for (int i = 0; i < 10; ++i) {
        const auto id = 1 + user * 10 + i;
        EXPECT_EQ(orders_->insert("large", orders_from(id, 1)).inserted, 1U);
        EXPECT_EQ(orders_->find("large", std::vector<std::int64_t>{id}), orders_from(id, 1));
      }
    });
  users.clear();
  EXPECT_EQ(orders_->stock("large")->left, 0);
}

TEST_P(OrderStoreSuite, ADatabaseOfANewerVersionIsLeftAlone) {
  GetParam().run(url_, "INSERT INTO sale_schema (version) VALUES (1000)");
  try {
    open_order_store(url_);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch);
    EXPECT_NE(error.message().find("version 1000, made by a newer Sluice"), std::string::npos);
  }
}

// The clock of the application is no part of it: this one stands five minutes off.
TEST_P(OrderStoreSuite, V52_TimeIsTheDatabases) {
  const auto before = system_clock().wall();
  VirtualClock application{before + std::chrono::minutes{5}};
  const auto there = orders_->wall();
  EXPECT_LT(there, application.wall() - std::chrono::minutes{4});
  EXPECT_GT(there, before - std::chrono::minutes{1});
  EXPECT_LE(there, orders_->wall());
}

// What an Error tells a person to run does what it says, on each database.
TEST_P(OrderStoreSuite, SQ01_TheStatementThatAnErrorNamesMendsTheTable) {
  insert({order(1, "ann"), order(2, "ann", 2)});
  orders_.reset();
  GetParam().run(url_, "DROP TABLE sale_schema");
  GetParam().run(url_, std::string{"DROP INDEX sale_orders_requests"} +
                           (GetParam().name == "mariadb" ? " ON sale_orders" : ""));
  GetParam().run(url_, "UPDATE sale_orders SET request = 'r'");
  std::string message;
  try {
    open_order_store(url_);
  } catch (const Error& error) {
    message = error.message();
  }
  ASSERT_TRUE(message.contains("UPDATE")) << message;
  GetParam().run(url_, message.substr(message.find("UPDATE")));
  const auto mended = open_order_store(url_)->page("s", 0, 10);
  ASSERT_EQ(mended.size(), 2U);
  EXPECT_NE(mended[0].request, mended[1].request);
  EXPECT_TRUE(mended[0].request.value == "r" || mended[1].request.value == "r");
}

/// SLUICE_LONG=n: n thousand orders, 2 without it.
TEST_P(OrderStoreSuite, SQ02_ATableOfManyOrdersIsBroughtUpToDate) {
  const auto* const given = std::getenv("SLUICE_LONG");
  const std::int64_t thousands = given ? std::max(1, std::atoi(given)) : 2;
  orders_->add_sale("many", thousands * 1000);
  for (std::int64_t i = 0; i < thousands; ++i)
    ASSERT_EQ(orders_->insert("many", orders_from(1 + i * 1000, 1000)).inserted, 1000U);
  orders_.reset();
  const auto* const on = GetParam().name == "mariadb" ? " ON sale_orders" : "";
  for (const std::string statement :
       {"DELETE FROM sale_schema", "ALTER TABLE sale_stock DROP COLUMN commits",
        "DROP INDEX sale_orders_requests", "DROP INDEX sale_orders_deadlines",
        "ALTER TABLE sale_orders DROP COLUMN returned"})
    GetParam().run(url_, statement + (statement.starts_with("DROP") ? on : ""));
  const auto begin = std::chrono::steady_clock::now();
  const auto orders = open_order_store(url_, {.answer = std::chrono::seconds{1}});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << thousands << ",000 orders took " << took.count() << " s\n";
  EXPECT_EQ(orders->find_number("many", order(1, "").number)->state, OrderState::awaiting);
  EXPECT_EQ(orders->stock("many")->left, 0);
  EXPECT_TRUE(orders->end_order("many", 1, OrderState::cancelled, "").now);
}

INSTANTIATE_TEST_SUITE_P(All, OrderStoreSuite, testing::ValuesIn(database_kinds()),
                         [](const auto& kind) { return kind.param.name; });
INSTANTIATE_TEST_SUITE_P(All, StoresOfASale, testing::ValuesIn(database_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace sluice
