// What a worker finds that went wrong with the stream and its group, and puts right.
#include <sqlite3/soci-sqlite3.h>

#include <atomic>
#include <set>
#include <stdexcept>

#include "sale/order_queue.hpp"
#include "sale/settlement.hpp"
#include "sale/watched_orders.hpp"
#include "sale/worker_fixture.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/collected_log.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::SaleWorker;

class SaleGroup : public SaleWorker {
 protected:
  std::set<std::string> consumers() {
    std::set<std::string> names;
    const auto reply = store_->run({"XINFO", "CONSUMERS", stream_, "workers"}).get();
    for (const auto& consumer : reply.as_items()) names.insert(consumer.as_items().at(1).as_text());
    return names;
  }

  void expect_all_in(std::size_t orders) {
    EXPECT_EQ(orders_->page(name_, 0, 10'000).size(), orders);
    EXPECT_EQ(sale_.status().get().dead, 0);
    test::expect_clean(*store_, sale_, *orders_);
  }
};

TEST_F(SaleGroup, E06_AnOrderThatWasHandedToNobodyReachesTheDatabase) {
  buy_many(5);
  read_as_dead_worker(3);
  EXPECT_EQ(store_->run({"XGROUP", "DELCONSUMER", stream_, "workers", "dead 0"}).get().as_integer(),
            3);
  OrderWorker worker{*store_, sale_, *orders_};
  worker.drain();
  EXPECT_EQ(worker.progress().inserted, 5U);
  EXPECT_EQ(waiting(), 0);
  expect_all_in(5);
}

// More of them than one look takes in, between entries that are another worker's.
TEST_F(SaleGroup, E06_ManyOrdersThatWereHandedToNobody) {
  buy_many(2600);
  const auto entries = read_as_dead_worker(2600);
  for (std::size_t i = 0; i < entries.size(); i += 100)
    store_
        ->run({"XCLAIM", stream_, "workers", "another", "0", entries[i].as_items().at(0).as_text()})
        .get();
  store_->run({"XGROUP", "DELCONSUMER", stream_, "workers", "dead 0"}).get();
  OrderWorker worker{*store_, sale_, *orders_};
  worker.drain();
  EXPECT_EQ(worker.progress().inserted, 2574U);
  EXPECT_EQ(waiting(), 26) << "a worker that may live has these";
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_F(SaleGroup, E06_OrdersThatTheGroupWasMadeToSkip) {
  buy_many(4);
  store_->run({"XGROUP", "SETID", stream_, "workers", "$"}).get();
  buy_many(1);
  OrderWorker{*store_, sale_, *orders_}.drain();
  expect_all_in(5);
}

TEST_F(SaleGroup, E06_ALostGroupIsMadeAgainAndNoOrderIsLostOrDoubled) {
  buy_many(10);
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  {
    std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
    wait_until([&] { return waiting() == 0; });
    buy_many(5);
    read_as_dead_worker(2);
    store_->run({"XGROUP", "DESTROY", stream_, "workers"}).get();
    buy_many(5);
    wait_until([&] { return waiting() == 0; });
  }
  EXPECT_EQ(worker.progress().inserted, 20U);
  EXPECT_EQ(worker.progress().dead, 0U);
  expect_all_in(20);
}

TEST_F(SaleGroup, E06_ALostStreamDoesNotStopTheOrdersAfterIt) {
  buy_many(3);
  store_->run({"DEL", stream_}).get();
  buy_many(2);  // makes the stream, without a group
  OrderWorker{*store_, sale_, *orders_, quick()}.drain();
  EXPECT_EQ(orders_->page(name_, 0, 10).size(), 2U);
}

TEST_F(SaleGroup, E06_AWorkerMakesNoStreamForASaleThatIsGone) {
  store_->run({"DEL", "{" + name_ + "}:sale", stream_}).get();
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  try {
    worker.drain();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("is not in the store any more"), std::string::npos)
        << error.message();
  }
  EXPECT_EQ(store_->run({"EXISTS", stream_}).get().as_integer(), 0);
}

TEST_F(SaleGroup, AWorkerThatRunsSettlesWhatOthersLeftWhenTheyDied) {
  buy_many(3);
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  wait_until([&] { return waiting() == 0; });
  const auto others = open_order_store(url_);
  const auto order = others->page(name_, 0, 10).front();
  others->end_order(name_, order.id, OrderState::cancelled, "");  // and killed
  others->begin_stock_change(name_, 5);                           // another one
  wait_until([&] { return sale_.status().get().sold == 2; });
  wait_until([&] { return sale_.status().get().stock == 5; });
  wait_until([&] { return others->returns(name_, -1, 10, true).empty(); });
  wait_until([&] { return !others->pending_stock_change(name_); });
  thread = {};
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_F(SaleGroup, E06_ConsumersOfDeadWorkersAreRemovedOnceTheyHaveNothingPending) {
  buy_many(6);
  for (const auto* const consumer : {"dead 1", "dead 2"})
    store_->run({"XREADGROUP", "GROUP", "workers", consumer, "COUNT", "2", "STREAMS", stream_, ">"})
        .get();
  store_->run({"XGROUP", "CREATECONSUMER", stream_, "workers", "dead 3"}).get();
  EXPECT_EQ(consumers().size(), 3U);

  const auto other_orders = open_order_store(url_);
  OrderWorker one{*store_, sale_, *orders_, quick()};
  OrderWorker two{*store_, sale_, *other_orders, quick()};
  {
    std::jthread first{[&](std::stop_token stop) { one.run(stop); }};
    std::jthread second{[&](std::stop_token stop) { two.run(stop); }};
    // One that lives and has nothing to do may be removed, too, until its next order.
    wait_until([&] {
      return !consumers().contains("dead 1") && !consumers().contains("dead 2") &&
             !consumers().contains("dead 3");
    });
  }
  EXPECT_EQ(consumers().size(), 0U);
  expect_all_in(6);
}

TEST_F(SaleGroup, E14_DeliveriesAreCountedForEachEntryAlone) {
  buy_many(2500);
  sale::OrderQueue queue{*store_, name_, "me"};
  queue.acknowledge_and_read({}, "", 2500).get();
  const auto all = store_->run({"XRANGE", stream_, "-", "+"}).get();
  const auto id_of = [&](std::size_t at) { return all.as_items()[at].as_items().at(0).as_text(); };
  for (const std::size_t at : {0, 1200, 2499})  // beside those that this consumer has pending
    store_
        ->run({"XCLAIM", stream_, "workers", "dead", "0", id_of(at), "IDLE", "1000000",
               "RETRYCOUNT", at == 1200 ? "1" : "7"})
        .get();
  const auto claimed = queue.claim(500s, "0-0", 1000, 5);
  ASSERT_EQ(claimed.entries.size(), 1U);
  EXPECT_EQ(claimed.entries[0].id, id_of(1200));
  using Suspects = sale::OrderQueue::Suspects;
  EXPECT_EQ(claimed.suspects, (Suspects{{0, id_of(0)}, {0, id_of(2499)}}));
  EXPECT_EQ(queue.deliver_alone(id_of(0), 0)->id, id_of(0));
  EXPECT_EQ(queue.claim(0s, "0-0", 1, 5).suspects, (Suspects{{1, id_of(0)}}));
  EXPECT_FALSE(queue.deliver_alone("1-1", 0)) << "it is pending for nobody";
}

TEST_F(SaleGroup, E14_RestartsWhileTheDatabaseIsAwayBuryNoGoodOrder) {
  OrderWorker{*store_, sale_, *orders_}.drain();  // enters the sale
  soci::session other{soci::sqlite3, "db=" + (folder_ / "orders.db").string() + " timeout=10"};
  other << "CREATE TRIGGER no_writes BEFORE UPDATE ON sale_stock BEGIN"
           " SELECT RAISE(ABORT, 'attempt to write a readonly database'); END";
  buy_many(20);
  auto options = quick();
  options.most_deliveries = 2;
  for (int restart = 0; restart < 6; ++restart) {
    OrderWorker worker{*store_, sale_, *orders_, options};
    std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
    wait_until([&] { return worker.progress().failures > 1; });
  }
  EXPECT_EQ(waiting(), 20);
  other << "DROP TRIGGER no_writes";
  OrderWorker worker{*store_, sale_, *orders_, options};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  wait_until([&] { return waiting() == 0; });
  EXPECT_EQ(worker.progress().dead, 0U);
  EXPECT_EQ(worker.progress().inserted, 20U);
}

// Each worker that tries it waits for the end of the recovery, and another one claims it meanwhile.
TEST_F(SaleGroup, E14_TriesWhileTheSaleIsBeingRecoveredBuryNoGoodOrder) {
  OrderWorker{*store_, sale_, *orders_}.drain();  // enters the sale
  buy_many(1);
  const auto id = read_as_dead_worker(1).front().as_items().at(0).as_text();
  sale::OrderQueue{*store_, name_, "dead"}.deliver_alone(id, 0);
  test::WatchedOrders recovered{*orders_};
  bool is_first = true;
  recovered.before = [&](std::string_view call) {
    if (call == "insert" && std::exchange(is_first, false)) orders_->begin_epoch(name_);
  };
  OrderWorker worker{*store_, sale_, recovered, quick()};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  wait_until([&] {
    const auto row = store_->run({"XPENDING", stream_, "workers", id, id, "1"}).get();
    return !row.as_items().empty() && row.as_items()[0].as_items().at(3).as_integer() == 1;
  });
}

/// A database whose client dies of one order.
class Deadly final : public test::WatchedOrders {
 public:
  struct Death : std::runtime_error {
    Death() : std::runtime_error{"killed"} {}
  };
  Deadly(OrderStore& orders, std::string buyer) : WatchedOrders(orders), buyer_(std::move(buyer)) {}

  InsertResult insert(const std::string& sale, std::span<const SaleOrder> orders,
                      std::int64_t epoch) override {
    for (const auto& order : orders)
      if (order.buyer.value == buyer_) throw Death{};
    return WatchedOrders::insert(sale, orders, epoch);
  }

 private:
  const std::string buyer_;
};

TEST_F(SaleGroup, E14_AnOrderThatKillsItsWorkersIsBuriedAndItsNeighboursAreNot) {
  buy_many(30);
  Deadly deadly{*orders_, "17"};
  auto options = quick();
  options.most_deliveries = 3;
  options.claim_after = 20ms;
  int deaths = 0;
  wait_until([&] {
    try {
      OrderWorker{*store_, sale_, deadly, options}.drain();
    } catch (const Deadly::Death&) {
      ++deaths;
      if (deaths == 5) EXPECT_EQ(waiting(), 1) << "its neighbours wait for one alone at most";
    }
    return waiting() == 0;
  });
  EXPECT_EQ(deaths, 8) << "three with its neighbours, five alone";
  const auto letters = sale_.dead_letters().get();
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].order->buyer.value, "17");
  EXPECT_EQ(letters[0].reason, "tried alone 5 times and never finished");
  EXPECT_EQ(orders_->page(name_, 0, 100).size(), 29U);
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_F(SaleGroup, AnAuditFindsNothingWhileOrdersAreBoughtBroughtInAndCancelled) {
  auto options = quick();
  options.batch = 20;
  OrderWorker worker{*store_, sale_, *orders_, options};
  const auto cancellers = open_order_store(url_);
  const auto auditors = open_order_store(url_);
  std::atomic<int> bought{0};
  std::jthread working{[&](std::stop_token stop) { worker.run(stop); }};
  wait_until([&] { return auditors->stock(name_).has_value(); });
  std::jthread buying{[&](std::stop_token stop) {
    for (int i = 0; i < 9'000 && !stop.stop_requested(); ++i)
      bought += test::buy(sale_, std::to_string(i), "r").outcome == SaleOutcome::admitted;
  }};
  std::jthread cancelling{[&](std::stop_token stop) {
    for (int i = 0; !stop.stop_requested(); i += 3) {
      while (i >= bought && !stop.stop_requested()) std::this_thread::yield();
      if (i < bought) sale_.cancel(*cancellers, BuyerId{std::to_string(i)}, RequestId{"r"}, "x");
    }
  }};
  for (int i = 0; i < 12; ++i) test::expect_clean(*store_, sale_, *auditors);
  for (auto* const thread : {&buying, &cancelling}) {
    thread->request_stop();
    thread->join();
  }
  wait_until([&] { return waiting() == 0; });
  test::expect_clean(*store_, sale_, *auditors);
  EXPECT_GT(bought, 0);
}

// What was claimed and what was read ahead may come to more than a script takes on Lua's stack.
TEST_F(SaleGroup, ManyOrdersAreAcknowledgedAtOnce) {
  constexpr int many = 20'000;
  store_
      ->run({"EVAL", "for i = 1, ARGV[1] do redis.call('xadd', KEYS[1], '*', 'order', i) end", "1",
             stream_, std::to_string(many)})
      .get();
  std::vector<std::string> done;
  for (auto& entry : read_as_dead_worker(many)) done.push_back(entry.as_items().at(0).as_text());
  ASSERT_EQ(done.size(), static_cast<std::size_t>(many));
  sale::OrderQueue{*store_, name_, "another"}.acknowledge(done, "");
  EXPECT_EQ(waiting(), 0);
  EXPECT_EQ(store_->run({"XLEN", stream_}).get().as_integer(), 0);
}

class SaleGate : public SaleWorker {
 protected:
  /// As if the store had been started again.
  void shut_gate() { store_->run({"HSET", "{" + name_ + "}:sale", "store", "0123"}).get(); }
  std::string store_now() {
    const auto told = store_->run({"INFO", "replication"}).get();
    const auto& text = told.as_text();
    return text.substr(text.find("master_replid:") + 14, 40);
  }
  bool recovers_now() { return sale::recover_if_needed(*store_, name_, *orders_).has_value(); }
  /// Of a process that was killed.
  void leave_mark(const std::string& store) {
    store_->run({"SET", "{" + name_ + "}:recovery", "token " + store, "PX", "20000"}).get();
  }
};

// The sale was shut for a minute after each of these.
TEST_F(SaleGate, V54_ARecoveryWhoseDatabaseFailedIsBegunAgainAtOnce) {
  buy_many(3);
  OrderWorker{*store_, sale_, *orders_}.drain();
  for (const std::string_view step : {"begin_epoch", "page", "find", "epoch"}) {
    shut_gate();
    test::WatchedOrders failing{*orders_};
    bool fails = true;
    failing.before = [&](std::string_view call) {
      if (call == step && std::exchange(fails, false))
        throw Error{Errc::database, "it was killed", Effect::unknown};
    };
    EXPECT_THROW(recover(*store_, name_, failing), Error) << step;
    EXPECT_TRUE(recovers_now()) << step;
    EXPECT_FALSE(recovers_now()) << "the gate is open";
  }
}

TEST_F(SaleGate, V54_ARecoveryOfAStoreThatWasStartedAgainSinceHoldsUpNobody) {
  buy_many(3);
  OrderWorker{*store_, sale_, *orders_}.drain();
  shut_gate();
  leave_mark(store_now());
  EXPECT_FALSE(recovers_now()) << "another process may be at it";
  leave_mark("fedcba9876543210");
  EXPECT_TRUE(recovers_now());
}

TEST_F(SaleGate, V54_ARecoveryThatLostItsPlaceLeavesThatOfTheOtherAlone) {
  buy_many(3);
  OrderWorker{*store_, sale_, *orders_}.drain();
  shut_gate();
  test::WatchedOrders overtaken{*orders_};
  overtaken.before = [&](std::string_view call) {
    if (call != "begin_epoch") return;
    leave_mark(store_now());
    throw Error{Errc::database, "it was killed"};
  };
  EXPECT_THROW(recover(*store_, name_, overtaken), Error);
  EXPECT_FALSE(recovers_now()) << "the other one is at it";
}

TEST_F(SaleGroup, NU04_AWorkerOfAnArchivedSaleEnds) {
  const test::CollectedLog log;
  buy_many(3);
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  std::atomic<bool> has_ended{false};
  std::jthread works{[&](const std::stop_token& stop) {
    worker.run(stop);
    has_ended = true;
  }};
  wait_until([&] { return worker.progress().inserted == 3; });
  const auto own = open_order_store(url_);
  EXPECT_TRUE(sale_.archive(*own));
  wait_until([&] { return has_ended.load(); });
  EXPECT_EQ(worker.progress().failures, 0U) << worker.progress().last_failure;
  EXPECT_EQ(log.count("tries again"), 0U) << log.text();
}

}  // namespace
}  // namespace sluice
