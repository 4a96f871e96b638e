// Orders are cancelled, the stock changes, a sale ends: as a model says, and wherever the process
// is killed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "engine/embedded_store.hpp"
#include "sale/records.hpp"
#include "sale/watched_orders.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"
#include "sluice/when_all.hpp"
#include "support/faulty_store.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

struct Killed {};

/// Kills at the n-th step of all that a process asks of store and database.
struct Fate {
  int steps_left;
  void step() {
    if (--steps_left < 0) throw Killed{};
  }
};

/// The database of a process that is killed by its fate.
class MortalOrders final : public test::WatchedOrders {
 public:
  MortalOrders(OrderStore& orders, Fate& fate) : WatchedOrders(orders) {
    before = [&fate](std::string_view) { fate.step(); };
  }
};

class SaleEnds : public testing::Test {
 protected:
  Admission buy(const std::string& buyer, const std::string& request, std::int64_t units = 1) {
    return sale_.buy({buyer}, {request}, units).get();
  }
  void work() { OrderWorker{*store_, sale_, *orders_}.drain(); }

  /// Does `deed` in a process that is killed after so many steps. False: it was.
  template <class Deed>
  bool survives(int steps, const Deed& deed) {
    Fate fate{1000};
    test::FaultyStore mortal{*store_};
    mortal.plan = [&](std::string_view) {
      fate.step();
      return test::Fault::none;
    };
    MortalOrders mortal_orders{*orders_, fate};
    auto sale = Sale::load(mortal, "s").get();
    fate.steps_left = steps;
    try {
      deed(*sale, mortal_orders);
    } catch (const Killed&) {
      return false;
    }
    return true;
  }

  /// Store and database agree on every unit.
  void expect_agreement() {
    work();
    const auto status = sale_.status().get();
    const auto stock = orders_->stock("s");
    std::int64_t standing = 0;
    std::int64_t ended = 0;
    for (const auto& order : orders_->page("s", -1, 10'000))
      (order.state == OrderState::awaiting ? standing : ended) += order.units;
    std::int64_t returned = 0;
    for (const auto& back : orders_->returns("s", -1, 10'000, false)) {
      returned += back.units;
      EXPECT_TRUE(back.done) << back.order.number;
    }
    EXPECT_EQ(returned, ended);
    EXPECT_EQ(status.sold, standing);
    EXPECT_EQ(stock->left + standing, stock->initial + stock->changed);
    EXPECT_EQ(status.stock, stock->initial + stock->changed);
    EXPECT_FALSE(orders_->pending_stock_change("s"));
    for (const auto& check : audit(*store_, sale_, *orders_).checks)
      EXPECT_TRUE(check.ok) << check.name << ": " << check.figure << ", expected " << check.expected
                            << " (" << check.detail << ")";
  }

  VirtualClock clock_{WallTime{1'767'369'597s}};  // 23:59:57 in Shanghai on 2026-01-02
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  SaleDefinition definition_{.name = "s",
                             .stock = 9,
                             .limit = 1,
                             .number_type = "MT",
                             .zone = "Asia/Shanghai",
                             .digits = 1};
  Sale sale_ = Sale::create(*store_, definition_).get();
  std::unique_ptr<OrderStore> orders_ = open_order_store("sqlite::memory:");
};

TEST_F(SaleEnds, ACancelledOrderGivesItsUnitsBackAndKeepsItsNumber) {
  const auto first = *buy("ann", "r1", 3).order;
  buy("bob", "r1", 6);
  EXPECT_EQ(buy("cid", "r1").outcome, SaleOutcome::sold_out);
  const auto ended = sale_.cancel(*orders_, {"ann"}, {"r1"}, "she, \"ann\", asked");
  EXPECT_TRUE(ended.now);
  EXPECT_EQ(ended.order->number, first.number);
  EXPECT_EQ(ended.order->state, OrderState::cancelled);
  EXPECT_EQ(sale_.status().get().left(), 3);

  const auto again = sale_.cancel(*orders_, {"ann"}, {"r1"}, "another reason");
  EXPECT_FALSE(again.now);
  EXPECT_EQ(again.reason, "she, \"ann\", asked");
  EXPECT_EQ(sale_.status().get().left(), 3) << "once";
  EXPECT_FALSE(sale_.cancel(*orders_, {"ann"}, {"r2"}, "").order) << "nobody asked that";
  EXPECT_THROW(sale_.cancel(*orders_, {"bob"}, {"r1"}, std::string(1001, 'x')), Error);

  const auto repeat = buy("ann", "r1", 3);
  EXPECT_EQ(repeat.outcome, SaleOutcome::cancelled);
  EXPECT_FALSE(repeat.has_order());
  EXPECT_EQ(repeat.order->number, first.number);
  const auto anew = buy("ann", "r2", 1);
  ASSERT_EQ(anew.outcome, SaleOutcome::admitted) << "the limit counts what stands";
  EXPECT_EQ(anew.order->n, 2);
  EXPECT_EQ(anew.order->number, "MT202601023");
  EXPECT_EQ(buy("ann", "r3").outcome, SaleOutcome::already_bought);
  EXPECT_EQ(buy("ann", "r1", 3).outcome, SaleOutcome::cancelled)
      << "an earlier order is found, too";
  expect_agreement();
}

TEST_F(SaleEnds, AnOrderIsCancelledWhereverItIsOnItsWay) {
  buy("ann", "r");
  buy("bob", "r");
  work();
  buy("cid", "r");
  EXPECT_TRUE(sale_.cancel(*orders_, {"bob"}, {"r"}, "").now) << "in the database";
  EXPECT_TRUE(sale_.cancel(*orders_, {"cid"}, {"r"}, "").now) << "in the stream";
  expect_agreement();
  EXPECT_EQ(sale_.status().get().dead, 0);
  EXPECT_EQ(sale_.status().get().sold, 1);
}

// The database ends the order all the same; what the store must follow waits for its recovery.
TEST_F(SaleEnds, AnOrderThatTheStoreLostEndsInTheDatabaseAndHoldsUpNoOther) {
  for (const auto* const buyer : {"ann", "bob"}) buy(buyer, "r", 2);
  work();
  const auto ann = store_->run({"HGET", "{s}:buyers", "ann"}).get().as_text();
  store_->run({"HDEL", "{s}:buyers", "ann"}).get();
  try {
    sale_.cancel(*orders_, {"ann"}, {"r"}, "");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::server);
    EXPECT_NE(error.message().find("sluice sale recover"), std::string::npos) << error.what();
  }
  const auto bob = orders_->find_request("s", {"bob"}, {"r"});
  orders_->end_order("s", bob->id, OrderState::cancelled, "");  // and killed
  EXPECT_THROW(sale_.settle(*orders_), Error);
  EXPECT_EQ(sale_.status().get().sold, 2) << "those of bob are back";
  store_->run({"HSET", "{s}:buyers", "ann", ann}).get();
  sale_.settle(*orders_);
  EXPECT_EQ(sale_.status().get().sold, 0);
  expect_agreement();
}

TEST_F(SaleEnds, NumbersThatWereUsedUpByCancelledOrdersMakeItFull) {
  for (int i = 0; i < 9; ++i) buy(std::to_string(i), "r");
  EXPECT_EQ(sale_.status().get().state, SaleState::sold_out);
  sale_.cancel(*orders_, {"3"}, {"r"}, "");
  EXPECT_EQ(buy("late", "r").outcome, SaleOutcome::full);
  EXPECT_EQ(sale_.status().get().state, SaleState::full);
  clock_.advance(3s);
  EXPECT_EQ(sale_.status().get().state, SaleState::open);
  EXPECT_EQ(buy("late", "r").order->number, "MT202601031");
  expect_agreement();
}

TEST_F(SaleEnds, TheStockIsRaisedAndLoweredWhileItSells) {
  buy("ann", "r", 5);
  EXPECT_TRUE(sale_.change_stock(*orders_, 6));
  EXPECT_EQ(buy("bob", "r", 2).outcome, SaleOutcome::not_enough);
  EXPECT_FALSE(sale_.change_stock(*orders_, 4)) << "5 are sold";
  EXPECT_EQ(sale_.status().get().stock, 6);
  EXPECT_TRUE(sale_.change_stock(*orders_, 8));
  EXPECT_TRUE(sale_.change_stock(*orders_, 8)) << "it is";
  EXPECT_EQ(buy("bob", "r", 3).outcome, SaleOutcome::admitted);
  EXPECT_TRUE(sale_.change_stock(*orders_, 8));
  EXPECT_THROW(sale_.change_stock(*orders_, 10), Error) << "one digit numbers nine orders";
  EXPECT_THROW(sale_.change_stock(*orders_, -1), Error);
  EXPECT_EQ(Sale::create(*store_, definition_).get().status().get().stock, 8)
      << "a program that knows the first definition joins";
  expect_agreement();
}

/// What one process does, and what another must find done when it does the same again.
struct Deed {
  const char* name;
  std::function<void(Sale&, OrderStore&)> act;
};

TEST_F(SaleEnds, AProcessMayBeKilledAtAnyStepOfACancelOrAChangeOfTheStock) {
  const Deed deeds[] = {
      {"cancel in the database",
       [](Sale& sale, OrderStore& orders) { sale.cancel(orders, {"ann"}, {"r"}, "why"); }},
      {"cancel in the stream",
       [](Sale& sale, OrderStore& orders) { sale.cancel(orders, {"bob"}, {"r"}, "why"); }},
      {"raise", [](Sale& sale, OrderStore& orders) { sale.change_stock(orders, 9); }},
      {"lower", [](Sale& sale, OrderStore& orders) { sale.change_stock(orders, 7); }},
      {"refused", [](Sale& sale, OrderStore& orders) { sale.change_stock(orders, 1); }}};
  for (const auto& deed : deeds) {
    for (const auto* const healer : {"settle()", "a worker", "the same again"}) {
      bool finished = false;
      for (int steps = 0; !finished; ++steps) {
        SCOPED_TRACE(std::string{deed.name} + ", killed at step " + std::to_string(steps) +
                     ", healed by " + healer);
        store_ = engine::open_embedded({.clock = &clock_});
        definition_.stock = 8;
        sale_ = Sale::create(*store_, definition_).get();
        orders_ = open_order_store("sqlite::memory:");
        buy("ann", "r", 2);
        work();
        buy("bob", "r", 3);

        finished = survives(steps, deed.act);
        if (healer == std::string{"settle()"}) sale_.settle(*orders_);
        if (healer != std::string{"the same again"}) expect_agreement();  // it has a worker
        deed.act(sale_, *orders_);
        expect_agreement();
        const auto status = sale_.status().get();
        const std::string name = deed.name;
        EXPECT_EQ(status.sold, name == "cancel in the database" ? 3
                               : name == "cancel in the stream" ? 2
                                                                : 5);
        EXPECT_EQ(status.stock, name == "raise" ? 9 : name == "lower" ? 7 : 8);
        if (HasFailure()) return;
      }
    }
  }
}

/// At each step of a change another operator, of another process, changes the stock twice.
TEST_F(SaleEnds, TwoOperatorsWhoChangeTheStockAtOnceBothFindItDone) {
  struct Row {
    std::int64_t mine;
    std::int64_t others[2];
    bool is_done;
  };
  const Row rows[] = {{9, {7, 8}, true},
                      {6, {8, 7}, true},
                      {9, {8, 9}, true},
                      {7, {9, 7}, true},
                      {1, {7, 9}, false}};
  for (const auto& row : rows) {
    bool met = true;
    for (int at = 0; met; ++at) {
      SCOPED_TRACE(fmt::format("{} against {} and {}, at step {}", row.mine, row.others[0],
                               row.others[1], at));
      store_ = engine::open_embedded({.clock = &clock_});
      definition_.stock = 8;
      sale_ = Sale::create(*store_, definition_).get();
      orders_ = open_order_store("sqlite::memory:");
      buy("ann", "r", 5);
      work();

      met = false;
      int step = 0;
      const auto meet = [&] {
        if (step++ != at) return;
        met = true;
        for (const auto stock : row.others) EXPECT_TRUE(sale_.change_stock(*orders_, stock));
      };
      test::FaultyStore my_store{*store_};
      my_store.plan = [&](std::string_view) {
        meet();
        return test::Fault::none;
      };
      test::WatchedOrders my_orders{*orders_};
      my_orders.before = [&](std::string_view) { meet(); };
      auto mine = Sale::load(my_store, "s").get();
      EXPECT_EQ(mine->change_stock(my_orders, row.mine), row.is_done);
      expect_agreement();
      const auto stock = sale_.status().get().stock;
      EXPECT_TRUE(!met || stock == row.mine || stock == row.others[1]) << stock;
      if (HasFailure()) return;
    }
  }
}

/// Orders of a sale that the database has no units for: dead letters.
std::string bury_all(Store& store, Sale& sale) {
  const auto fewer = open_order_store("sqlite::memory:");
  fewer->add_sale("s", sale.definition().stock);
  fewer->begin_stock_change("s", 0);
  fewer->end_stock_change("s", 1, true);
  OrderWorker{store, sale, *fewer}.drain();
  store.run({"HDEL", "{s}:sale", "database"}).get();
  const auto letters = sale.dead_letters().get();
  return letters.empty() ? std::string{} : letters.front().id;
}

TEST_F(SaleEnds, ADeadLetterIsGivenBack) {
  buy("ann", "r", 3);
  const auto letter = bury_all(*store_, sale_);
  EXPECT_FALSE(sale_.give_back(*orders_, "1-1", ""));
  EXPECT_THROW(sale_.give_back(*orders_, letter, std::string(1001, 'x')), Error);
  const auto ended = sale_.give_back(*orders_, letter, "no units");
  ASSERT_TRUE(ended && ended->order);
  EXPECT_TRUE(ended->now);
  EXPECT_EQ(ended->order->buyer.value, "ann");
  EXPECT_EQ(ended->reason, "no units");
  EXPECT_FALSE(sale_.give_back(*orders_, letter, "")) << "it is gone";
  EXPECT_EQ(sale_.status().get().left(), 9);
  EXPECT_EQ(sale_.status().get().dead, 0);
  EXPECT_EQ(buy("ann", "r", 3).outcome, SaleOutcome::cancelled);
  EXPECT_EQ(buy("ann", "r2", 3).outcome, SaleOutcome::admitted);
  expect_agreement();
}

TEST_F(SaleEnds, ADeadLetterThatNobodyWasAdmittedForIsOnlyRemoved) {
  buy("ann", "r", 3);
  const auto forged = store_->run({"XRANGE", "{s}:orders", "-", "+"}).get();
  const auto order = forged.as_items().at(0).as_items().at(1).as_items().at(1).as_text();
  work();
  store_->run({"XADD", "{s}:dead", "1-1", "reason", "", "entry", "", "order", "rubbish"}).get();
  store_
      ->run({"XADD", "{s}:dead", "1-2", "reason", "", "entry", "", "order", order, "buyer", "cid"})
      .get();
  for (const auto* const letter : {"1-1", "1-2"}) {
    const auto ended = sale_.give_back(*orders_, letter, "");
    ASSERT_TRUE(ended);
    EXPECT_FALSE(ended->order);
  }
  EXPECT_EQ(sale_.status().get().sold, 3);
  expect_agreement();
}

// Also beside a process that sends the same letter to the workers again.
TEST_F(SaleEnds, AProcessMayBeKilledAtAnyStepOfGivingADeadLetterBack) {
  for (const auto* const healer : {"a worker", "the same again", "revive"}) {
    bool finished = false;
    for (int steps = 0; !finished; ++steps) {
      SCOPED_TRACE("killed at step " + std::to_string(steps) + ", healed by " + healer);
      store_ = engine::open_embedded({.clock = &clock_});
      sale_ = Sale::create(*store_, definition_).get();
      orders_ = open_order_store("sqlite::memory:");
      buy("ann", "r", 2);
      const auto letter = bury_all(*store_, sale_);
      buy("bob", "r", 3);

      const auto give_back = [&](Sale& sale, OrderStore& orders) {
        sale.give_back(orders, letter, "why");
      };
      finished = survives(steps, give_back);
      if (healer == std::string{"revive"}) sale_.revive(letter).get();
      if (healer != std::string{"the same again"}) work();
      if (healer == std::string{"revive"}) expect_agreement();
      give_back(sale_, *orders_);
      sale_.cancel(*orders_, {"ann"}, {"r"}, "after all");  // where it was revived in time
      expect_agreement();
      EXPECT_EQ(sale_.status().get().dead, 0);
      EXPECT_EQ(sale_.status().get().sold, 3);
      EXPECT_EQ(orders_->page("s", -1, 10).size(), 2U);
      if (HasFailure()) return;
    }
  }
}

TEST_F(SaleEnds, AWorkerSettlesManyAtATimeAndOrdersAmongThem) {
  definition_ = {.name = "many", .stock = 999, .number_type = "MANY", .digits = 3};
  sale_ = Sale::create(*store_, definition_).get();
  std::vector<Task<Admission>> wishes;
  for (int i = 0; i < 250; ++i) wishes.push_back(sale_.buy({std::to_string(i)}, {"r"}));
  const auto admitted = when_all(std::move(wishes)).get();
  work();
  for (const auto& one : admitted)  // by processes that were killed then
    orders_->end_order("many", one.order->id, OrderState::cancelled, "");
  store_->run({"HDEL", "{many}:buyers", "0"}).get();  // no process can settle that one
  buy("late", "r");

  test::WatchedOrders watched{*orders_};
  std::vector<std::string_view> calls;
  watched.before = [&](std::string_view call) { calls.push_back(call); };
  OrderWorker worker{*store_, sale_, watched};
  worker.drain();
  EXPECT_EQ(sale_.status().get().sold, 2);
  EXPECT_EQ(std::ranges::count(calls, "return_done"), 249);
  EXPECT_LE(std::count(calls.begin(), std::ranges::find(calls, "insert"), "return_done"), 100)
      << "an order waits for some of them only";
  EXPECT_NE(worker.progress().last_failure.find("sluice sale recover"), std::string::npos);
}

// A hundred thousand others may be on their way: who cancels has none of them read.
TEST_F(SaleEnds, ACancelOfAnOrderOnItsWayReadsItsNeighboursAlone) {
  definition_ = {.name = "many", .stock = 9999, .number_type = "MANY"};
  sale_ = Sale::create(*store_, definition_).get();
  std::vector<SaleOrder> sold;
  constexpr int of_a_moment = 100;
  for (int i = 0; i < 5000; i += of_a_moment) {
    clock_.advance(1ms);
    std::vector<Task<Admission>> wishes;
    for (int j = i; j < i + of_a_moment; ++j)
      wishes.push_back(sale_.buy({std::to_string(j)}, {"r"}));
    for (const auto& one : when_all(std::move(wishes)).get()) sold.push_back(*one.order);
  }
  test::FaultyStore watched{*store_};
  auto sale = Sale::load(watched, "many").get();
  for (const std::size_t place : {0, 2500, 4999}) {
    const auto& order = sold.at(place);
    const auto before = watched.executed("XRANGE");
    EXPECT_TRUE(sale->cancel(*orders_, order.buyer, order.request, "").now);
    EXPECT_LE(watched.executed("XRANGE") - before, 3U) << place;
  }
  // Sent again by an operator, it stands elsewhere.
  const auto& moved = sold.at(1);
  const auto entry = store_->run({"XRANGE", "{many}:orders", "-", "+", "COUNT", "2"}).get();
  const auto& found = entry.as_items().at(1).as_items();
  ASSERT_EQ(found.at(1).as_items().at(3).as_text(), moved.buyer.value);
  store_
      ->run({"XADD", "{many}:orders", "*", "order", found.at(1).as_items().at(1).as_text(), "buyer",
             moved.buyer.value})
      .get();
  store_->run({"XDEL", "{many}:orders", found.at(0).as_text()}).get();
  EXPECT_TRUE(sale->cancel(*orders_, moved.buyer, moved.request, "").now);
}

// What it would do to the stock is right after the recovery alone.
TEST_F(SaleEnds, NoChangeOfTheStockIsAppliedToAStoreThatLostTheOneBefore) {
  sale_.change_stock(*orders_, 7);
  store_->run({"HSET", "{s}:sale", "capacity", "9"}).get();  // rolled back
  store_->run({"HDEL", "{s}:sale", "changes"}).get();
  EXPECT_TRUE(orders_->begin_stock_change("s", 8));  // and killed
  EXPECT_THROW(sale_.settle(*orders_), Error);
  work();
  EXPECT_TRUE(orders_->pending_stock_change("s"));
  EXPECT_EQ(sale_.status().get().stock, 9);
  recover(*store_, "s", *orders_);
  EXPECT_EQ(sale_.status().get().stock, 8);
  expect_agreement();
}

TEST_F(SaleEnds, AnArchiveLeavesTheOrdersInTheDatabaseAndInAFile) {
  buy("ann", "r1", 2);
  buy("b,o\"b", "r\n1", 2);
  OrderWorker{*store_, sale_, *orders_}.drain();
  sale_.cancel_units(*orders_, {"b,o\"b"}, {"r\n1"}, 1, "k");
  sale_.cancel(*orders_, {"ann"}, {"r1"}, "no, thanks");
  buy("ann", "r2", 1);
  const test::TempDir folder;
  const auto file = (folder / "orders.csv").string();
  EXPECT_TRUE(sale_.archive(*orders_, {.file = file, .step = 1}));
  EXPECT_FALSE(sale_.archive(*orders_)) << "it was before";
  EXPECT_EQ(orders_->page("s", -1, 10).size(), 3U);
  std::ostringstream text;
  text << std::ifstream{file}.rdbuf();
  const auto id = [&](std::size_t which) {
    return std::to_string(orders_->page("s", -1, 10).at(which).id);
  };
  EXPECT_EQ(text.str(),
            "number,id,buyer,n,units,issued_at,request,state,reason,returned,price,currency,paid,"
            "refunded,settled\n"
            "MT202601021," +
                id(0) +
                ",ann,1,2,2026-01-02T15:59:57Z,r1,cancelled,\"no, thanks\",0,,,0,0,0\n"
                "MT202601022," +
                id(1) +
                ",\"b,o\"\"b\",1,2,2026-01-02T15:59:57Z,r%0A1,awaiting,,1,,,0,0,0\n"
                "MT202601023," +
                id(2) + ",ann,2,1,2026-01-02T15:59:57Z,r2,awaiting,,0,,,0,0,0\n");

  EXPECT_EQ(sale_.status().get().state, SaleState::archived);
  EXPECT_EQ(buy("late", "r").outcome, SaleOutcome::closed);
  EXPECT_EQ(buy("ann", "r2").outcome, SaleOutcome::closed);
  auto joined = Sale::create(*store_, definition_).get();
  EXPECT_EQ(joined.buy({"late"}, {"r"}).get().outcome, SaleOutcome::closed) << "never a new sale";
  std::set<std::string> keys;
  const auto there = store_->run({"KEYS", "*"}).get();
  for (const auto& key : there.as_items()) keys.insert(key.as_text());
  EXPECT_EQ(keys, (std::set<std::string>{"sluice:sales", "sluice:sales:names", "sluice:sales:store",
                                         "sluice:sales:types", "{s}:sale"}));

  // An order that ends later ends in the database alone.
  EXPECT_TRUE(sale_.cancel(*orders_, {"ann"}, {"r2"}, "late").now);
  EXPECT_TRUE(orders_->returns("s", -1, 10, true).empty());
  EXPECT_FALSE(sale_.archive(*orders_));
}

/// Each text of a file, with each beginning that a spreadsheet runs, and each that begins a cell of
/// its own where cells end with ';'.
TEST_F(SaleEnds, SV19_NoCellOfAnArchiveIsRun) {
  std::vector<std::string> texts;
  for (int byte = 1; byte < 0x80; ++byte) texts.push_back(fmt::format("{}1+1", char(byte)));
  for (const auto* more : {"\xef\xbc\x9d"
                           "1",
                           "\xef\xbc\x8b"
                           "1",
                           "\xef\xbc\x8d"
                           "1",
                           "\xef\xbc\xa0"
                           "1",
                           "a;=1", "a\t=1", "a\r=1", "a\n=1", "=1,\"=1", "\"=1\""})
    texts.emplace_back(more);
  definition_ = {.name = "s2", .stock = 1000, .limit = 1, .number_type = "-1", .digits = 4};
  sale_ = Sale::create(*store_, definition_).get();
  for (const auto& text : texts) {
    EXPECT_EQ(buy(text, text).outcome, SaleOutcome::admitted);
    sale_.cancel(*orders_, {text}, {text}, text);
  }
  const test::TempDir folder;
  const auto file = (folder / "orders.csv").string();
  EXPECT_TRUE(sale_.archive(*orders_, {.file = file}));
  std::ifstream written{file};
  std::size_t lines = 0;
  for (std::string line; std::getline(written, line); ++lines) {
    for (const auto* begin : {"=", "+", "-", "@", "\t", "\r", "\xef\xbc\x9d", "\xef\xbc\x8b",
                              "\xef\xbc\x8d", "\xef\xbc\xa0"})
      for (const auto* before : {"\n", ",", ",\"", ";", "\t", ";\""})
        EXPECT_EQ(("\n" + line).find(std::string{before} + begin), std::string::npos) << line;
  }
  EXPECT_EQ(lines, texts.size() + 1);
  const auto kept = orders_->page("s2", -1, 500);
  EXPECT_EQ(kept.size(), texts.size());
  EXPECT_EQ(kept.at(10).buyer.value, texts.at(10)) << "the database has it as it is";
}

// Between the last look at it and the mark, after which no key of the order is there any more.
TEST_F(SaleEnds, AnOrderThatIsCancelledBesideAnArchiveIsCancelledInItsFile) {
  const test::TempDir folder;
  const auto file = (folder / "orders.csv").string();
  for (const auto* const buyer : {"ann", "bob"}) buy(buyer, "r", 2);
  test::WatchedOrders watched{*orders_};
  int exports = 0;
  bool met = false;
  watched.before = [&](std::string_view call) {
    exports += call == "page" && std::filesystem::exists(file + ".unfinished");
    if (call != "keep_definition" || !std::filesystem::exists(file)) return;
    if (!std::exchange(met, true)) sale_.cancel(*orders_, {"bob"}, {"r"}, "beside it");
  };
  EXPECT_TRUE(sale_.archive(watched, {.file = file}));
  EXPECT_TRUE(met);
  std::ostringstream text;
  text << std::ifstream{file}.rdbuf();
  EXPECT_NE(text.str().find("r,awaiting,,0,"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("r,cancelled,beside it,0,"), std::string::npos) << text.str();
  EXPECT_EQ(exports, 2);
  EXPECT_TRUE(audit(*store_, sale_, *orders_).ok());
}

TEST_F(SaleEnds, AnExportAsksForTheReasonsOfManyOrdersAtOnce) {
  for (const auto* const buyer : {"ann", "bob", "cid"}) {
    buy(buyer, "r");
    sale_.cancel(*orders_, {buyer}, {"r"}, buyer);
  }
  int asked = 0;
  test::WatchedOrders watched{*orders_};
  watched.before = [&](std::string_view call) { asked += call == "reasons"; };
  const test::TempDir folder;
  sale_.archive(watched, {.file = (folder / "orders.csv").string()});
  EXPECT_EQ(asked, 1);
}

TEST_F(SaleEnds, TheSlowerOfTwoArchivesFindsTheWorkDone) {
  for (const std::string_view at : {"totals", "page"}) {
    SCOPED_TRACE(at);
    store_->run({"FLUSHALL"}).get();
    orders_ = open_order_store("sqlite::memory:");
    sale_ = Sale::create(*store_, definition_).get();
    for (const auto* const buyer : {"ann", "bob"}) buy(buyer, "r");
    auto quicker = *Sale::load(*store_, "s").get();
    test::WatchedOrders watched{*orders_};
    bool met = false;
    watched.before = [&](std::string_view call) {
      if (call == at && !std::exchange(met, true)) quicker.archive(*orders_);
    };
    EXPECT_FALSE(sale_.archive(watched));
    EXPECT_TRUE(met);
    EXPECT_TRUE(audit(*store_, sale_, *orders_).ok());
  }
}

TEST_F(SaleEnds, TheStockOfAnArchivedSaleChangesNoMore) {
  buy("ann", "r");
  sale_.archive(*orders_);
  try {
    sale_.change_stock(*orders_, 8);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument);
    EXPECT_NE(error.message().find("is archived"), std::string::npos) << error.what();
  }
  EXPECT_EQ(orders_->totals("s").last_change, 0) << "nothing is written";
}

TEST_F(SaleEnds, AnArchiveRefusesWhatIsNotInOrder) {
  const auto refused = [&](Errc code, const std::string& says) {
    try {
      sale_.archive(*orders_);
      ADD_FAILURE() << "expected: " << says;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), code) << error.what();
      EXPECT_NE(error.message().find(says), std::string::npos) << error.what();
    }
    EXPECT_EQ(to_string(sale_.status().get().state), "closed");
  };
  buy("ann", "r");
  store_->run({"XADD", "{s}:orders", "*", "order", "rubbish"}).get();
  refused(Errc::server, "1 dead letter(s)");
  store_->run({"DEL", "{s}:dead"}).get();
  store_->run({"HINCRBY", "{s}:sale", "orders", "1"}).get();
  refused(Errc::corrupt, "its audit fails");
  EXPECT_EQ(sale::Records(*store_, definition_).scan("", 10).get().buyers.size(), 1U)
      << "nothing is deleted";
}

TEST_F(SaleEnds, AnArchiveMayBeKilledAtAnyStep) {
  const test::TempDir folder;
  const auto file = (folder / "orders.csv").string();
  bool finished = false;
  for (int steps = 0; !finished; ++steps) {
    SCOPED_TRACE("killed at step " + std::to_string(steps));
    store_ = engine::open_embedded({.clock = &clock_});
    sale_ = Sale::create(*store_, definition_).get();
    orders_ = open_order_store("sqlite::memory:");
    for (const auto* const buyer : {"ann", "bob", "cid"}) buy(buyer, "r");
    sale_.cancel(*orders_, {"ann"}, {"r"}, "");
    buy("ann", "r2");

    std::filesystem::remove(file);
    finished = survives(steps, [&](Sale& sale, OrderStore& orders) {
      sale.archive(orders, {.file = file, .step = 1});
    });
    std::ifstream written{file};
    EXPECT_TRUE(!written || std::count(std::istreambuf_iterator<char>{written}, {}, '\n') == 5)
        << "whole or not at all";
    const auto late = buy("bob", "r").outcome;
    EXPECT_TRUE(late == SaleOutcome::repeated || late == SaleOutcome::closed) << to_string(late);
    clock_.advance(31s);  // what the killed worker had can be claimed
    const auto keys_left = store_->run({"KEYS", "{s}:*"}).get().as_items().size();
    EXPECT_EQ(sale_.archive(*orders_, {.file = file, .step = 1}), keys_left > 1)
        << "it goes on, unless all was done";
    EXPECT_FALSE(sale_.archive(*orders_));
    EXPECT_EQ(orders_->page("s", -1, 10).size(), 4U);
    EXPECT_EQ(store_->run({"KEYS", "{s}:*"}).get().as_items().size(), 1U);
    if (HasFailure()) return;
  }
}

/// What a sale must answer, in the words of docs/sale.md.
class Model {
 public:
  explicit Model(const SaleDefinition& sale) : sale_(sale), stock_(sale.stock) {}

  struct Order {
    std::string buyer;
    std::int64_t units;
    bool cancelled = false;
  };

  SaleOutcome buy(const std::string& buyer, const std::string& request, std::int64_t units) {
    if (const auto same = orders_.find({buyer, request}); same != orders_.end()) {
      if (same->second.cancelled) return SaleOutcome::cancelled;
      return same->second.units == units ? SaleOutcome::repeated : SaleOutcome::other_units;
    }
    std::int64_t his = 0;
    std::int64_t his_units = 0;
    std::int64_t sold = 0;
    for (const auto& [key, order] : orders_) {
      if (order.cancelled) continue;
      sold += order.units;
      if (order.buyer != buyer) continue;
      ++his;
      his_units += order.units;
    }
    if (sale_.limit > 0 && his >= sale_.limit) return SaleOutcome::already_bought;
    if (sale_.unit_limit > 0 && his_units + units > sale_.unit_limit)
      return SaleOutcome::too_many_units;
    if (sold >= stock_) return SaleOutcome::sold_out;
    if (sold + units > stock_) return SaleOutcome::not_enough;
    orders_[{buyer, request}] = {buyer, units};
    return SaleOutcome::admitted;
  }
  bool cancel(const std::string& buyer, const std::string& request) {
    const auto found = orders_.find({buyer, request});
    return found != orders_.end() && !std::exchange(found->second.cancelled, true);
  }
  bool change_stock(std::int64_t stock) {
    if (stock < sold()) return false;
    stock_ = stock;
    return true;
  }
  std::int64_t sold() const {
    std::int64_t units = 0;
    for (const auto& [key, order] : orders_) units += order.cancelled ? 0 : order.units;
    return units;
  }
  std::int64_t stock() const { return stock_; }
  std::size_t orders() const { return orders_.size(); }

 private:
  const SaleDefinition sale_;
  std::int64_t stock_;
  std::map<std::pair<std::string, std::string>, Order> orders_;
};

TEST_F(SaleEnds, AnswersAsTheModelWhateverIsAskedInWhichOrder) {
  std::random_device seeds;
  for (int round = 0; round < test::rounds(30); ++round) {
    const auto seed = seeds();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random{seed};
    const auto pick = [&](int most) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
    };
    definition_ = {.name = "s" + std::to_string(round),
                   .stock = 5 + pick(30),
                   .limit = pick(4),
                   .unit_limit = pick(3) * 4,
                   .number_type = "MT" + std::to_string(round),
                   .zone = "Asia/Shanghai",
                   .digits = 4};
    auto sale = Sale::create(*store_, definition_).get();
    Model model{definition_};
    for (int step = 0; step < 150; ++step) {
      const auto buyer = "buyer " + std::to_string(pick(5));
      const auto request = "r" + std::to_string(pick(12));
      const auto units = 1 + pick(3);
      switch (pick(10)) {
        case 0: {
          const auto ended = sale.cancel(*orders_, {buyer}, {request}, "why");
          EXPECT_EQ(ended.now, model.cancel(buyer, request));
          break;
        }
        case 1: {
          const auto stock = pick(40);
          EXPECT_EQ(sale.change_stock(*orders_, stock), model.change_stock(stock)) << stock;
          break;
        }
        case 2: OrderWorker{*store_, sale, *orders_}.drain(); break;
        case 3: clock_.advance(std::chrono::seconds{pick(40'000)}); break;
        case 4: {  // three at once, in one script
          std::vector<Task<Admission>> wishes;
          std::vector<SaleOutcome> expected;
          for (int i = 0; i < 3; ++i) {
            const auto other = "r" + std::to_string(pick(12));
            expected.push_back(model.buy(buyer, other, units));
            wishes.push_back(sale.buy({buyer}, {other}, units));
          }
          const auto answers = when_all(std::move(wishes)).get();
          for (std::size_t i = 0; i < answers.size(); ++i)
            EXPECT_EQ(to_string(answers[i].outcome), to_string(expected[i]));
          break;
        }
        default: {
          const auto expected = model.buy(buyer, request, units);
          const auto answer = sale.buy({buyer}, {request}, units).get();
          EXPECT_EQ(to_string(answer.outcome), to_string(expected))
              << buyer << ' ' << request << ' ' << units;
          if (answer.order) {
            EXPECT_EQ(answer.order->buyer.value, buyer);
            EXPECT_TRUE(!answer.has_order() || answer.order->request.value == request);
          }
        }
      }
      const auto status = sale.status().get();
      EXPECT_EQ(status.sold, model.sold());
      EXPECT_EQ(status.stock, model.stock());
      if (HasFailure()) return;
    }
    OrderWorker{*store_, sale, *orders_}.drain();
    EXPECT_EQ(orders_->page(definition_.name, -1, 10'000).size(), model.orders());
    for (const auto& check : audit(*store_, sale, *orders_).checks)
      EXPECT_TRUE(check.ok) << check.name << ": " << check.figure << ", expected " << check.expected
                            << " (" << check.detail << ")";
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
