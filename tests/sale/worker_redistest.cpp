#include <sqlite3/soci-sqlite3.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>

#include "sale/order_queue.hpp"
#include "sale/worker_fixture.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::SaleWorker;

TEST_F(SaleWorker, BringsEveryOrderInAndForgetsTheEntries) {
  buy_many(2500);
  OrderWorker worker{*store_, sale_, *orders_, {.batch = 1000}};
  worker.drain();
  EXPECT_EQ(worker.progress().inserted, 2500U);
  EXPECT_EQ(sale_.status().get().waiting, 0);
  EXPECT_EQ(orders_->stock(name_)->left, 7499);
  EXPECT_EQ(store_->run({"XINFO", "CONSUMERS", stream_, "workers"}).get().as_items().size(), 0U)
      << "it left the group";
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_F(SaleWorker, RunsUntilItIsStopped) {
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  buy_many(300);
  wait_until([&] { return waiting() == 0; });
  thread.request_stop();
  thread.join();
  EXPECT_EQ(worker.progress().inserted, 300U);
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_F(SaleWorker, OneThatOnlyLooksWaitsForNothingInTheStore) {
  auto options = quick();
  options.blocks = false;
  OrderWorker worker{*store_, sale_, *orders_, options};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  buy_many(300);
  wait_until([&] { return waiting() == 0; });
  EXPECT_EQ(worker.progress().inserted, 300U);
  const auto stats = store_->run({"INFO", "clients"}).get().as_text();
  EXPECT_NE(stats.find("blocked_clients:0"), stats.npos) << stats;
  thread.request_stop();
  thread.join();
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_F(SaleWorker, V05_EndsWhatIsNotPaidInTimeHoweverSeldomItLooksForTheDead) {
  auto paid =
      Sale::create(
          *store_,
          {.name = name_ + " paid",
           .stock = 3,
           .number_type = "PAID",
           .payment = PaymentTerms{.window = 300ms, .grace = 0us, .price = 500, .currency = "CNY"}})
          .get();
  auto options = quick();
  options.claim_after = 1h;
  OrderWorker worker{*store_, paid, *orders_, options};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  wait_until([&] { return orders_->stock(paid.definition().name).has_value(); });
  EXPECT_EQ(test::buy(paid, "ann", "r").outcome, SaleOutcome::admitted);
  wait_until([&] { return orders_->totals(paid.definition().name).orders == 1; });
  wait_until([&] { return paid.status().get().left() == 3; });
  EXPECT_EQ(test::buy(paid, "ann", "r").outcome, SaleOutcome::cancelled);
}

TEST_F(SaleWorker, TwoWorkersShareTheWork) {
  const auto other_orders = open_order_store(url_);
  OrderWorker one{*store_, sale_, *orders_, quick()};
  OrderWorker two{*store_, sale_, *other_orders, quick()};
  EXPECT_NE(one.consumer(), two.consumer());
  {
    std::jthread first{[&](std::stop_token stop) { one.run(stop); }};
    std::jthread second{[&](std::stop_token stop) { two.run(stop); }};
    buy_many(2000);
    wait_until([&] { return waiting() == 0; });
  }
  EXPECT_EQ(one.progress().inserted + two.progress().inserted, 2000U);
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_F(SaleWorker, TakesOverWhatADeadWorkerHad) {
  buy_many(10);
  read_as_dead_worker(10);
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  wait_until([&] { return waiting() == 0; });
  EXPECT_EQ(worker.progress().claimed, 10U);
  EXPECT_EQ(worker.progress().inserted, 10U);
  test::expect_clean(*store_, sale_, *orders_);
}

// Killed between COMMIT and acknowledgement: another worker finds the orders in the database.
TEST_F(SaleWorker, ToleratesWhatIsInTheDatabaseAlready) {
  buy_many(10);
  const auto entries = read_as_dead_worker(5);
  std::vector<SaleOrder> committed;
  for (const auto& entry : entries) committed.push_back(*sale::entry_of(entry).order);
  orders_->add_sale(name_, sale_.definition().stock);
  EXPECT_EQ(orders_->insert(name_, committed).inserted, 5U);
  for (const auto& check : audit(*store_, sale_, *orders_).checks)  // while half is on the way
    EXPECT_TRUE(check.ok || check.name == "definition_that_differs") << check.name;

  OrderWorker worker{*store_, sale_, *orders_, quick()};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  wait_until([&] { return waiting() == 0; });
  EXPECT_EQ(worker.progress().inserted, 5U);
  EXPECT_GE(worker.progress().repeated, 5U);  // more where the machine is slower than claim_after
  EXPECT_EQ(orders_->stock(name_)->left, sale_.definition().stock - 10);
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_F(SaleWorker, PoisonGoesToTheDeadLettersWithItsFields) {
  buy_many(2);
  store_
      ->run({"XADD", stream_, "*", "order", "rubbish", "buyer", "ann", "more",
             std::string_view{"\0\xff", 2}})
      .get();
  store_->run({"XADD", stream_, "*", "unknown", "field"}).get();
  buy_many(2);
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  worker.drain();
  EXPECT_EQ(worker.progress().inserted, 4U);
  EXPECT_EQ(worker.progress().dead, 2U);
  const auto letters = sale_.dead_letters().get();
  ASSERT_EQ(letters.size(), 2U);
  EXPECT_EQ(letters[0].reason, "its fields make no order");
  EXPECT_FALSE(letters[0].order);
  using Fields = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(letters[0].fields,
            (Fields{{"order", "rubbish"}, {"buyer", "ann"}, {"more", std::string("\0\xff", 2)}}));
  EXPECT_EQ(letters[1].fields, (Fields{{"unknown", "field"}}));
  EXPECT_EQ(sale_.dead_letters(letters[0].id, 10).get().size(), 1U);
  EXPECT_EQ(sale_.status().get().dead, 2);
  const auto checks = audit(*store_, sale_, *orders_).checks;
  const auto poison =
      std::find_if(checks.begin(), checks.end(), [](const AuditCheck& check) { return !check.ok; });
  ASSERT_NE(poison, checks.end());
  EXPECT_EQ(poison->name, "entries_that_make_no_order");
  EXPECT_EQ(poison->figure, 2);
}

TEST_F(SaleWorker, WhatKillsEveryWorkerIsBuriedAndCanBeRevived) {
  buy_many(3);
  sale::OrderQueue queue{*store_, name_, "dead"};
  for (const auto& entry : read_as_dead_worker(3))  // and then alone, five times
    queue.deliver_alone(entry.as_items().at(0).as_text(), 4);
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  {
    std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
    wait_until([&] { return waiting() == 0; });
  }
  EXPECT_EQ(worker.progress().inserted, 0U);
  const auto letters = sale_.dead_letters().get();
  ASSERT_EQ(letters.size(), 3U);
  EXPECT_EQ(letters[0].reason, "tried alone 5 times and never finished");
  EXPECT_TRUE(letters[0].order);
  test::expect_clean(*store_, sale_, *orders_);  // a dead letter is no lost order

  EXPECT_TRUE(sale_.revive(letters[1].id).get());
  EXPECT_FALSE(sale_.revive(letters[1].id).get());
  worker.drain();
  EXPECT_EQ(sale_.dead_letters().get().size(), 2U);
  EXPECT_EQ(orders_->page(name_, 0, 10), std::vector<SaleOrder>{*letters[1].order});
  test::expect_clean(*store_, sale_, *orders_);
}

// What Redis admits after it lost its memory, the database refuses.
TEST_F(SaleWorker, ADatabaseWithLessStockRefusesAndNothingIsLost) {
  buy_many(5);
  OrderWorker{*store_, sale_, *orders_, quick()}.drain();
  for (const auto* const key : {"sale", "buyers", "requests"})
    store_->run({"DEL", "{" + name_ + "}:" + key}).get();
  auto anew = Sale::create(*store_, sale_.definition()).get();
  EXPECT_EQ(test::buy(anew, "0", "another request").outcome, SaleOutcome::admitted)
      << "Redis has forgotten the buyer";
  OrderWorker worker{*store_, anew, *orders_, quick()};
  EXPECT_THROW(worker.drain(), Error) << "not before the recovery";
  recover(*store_, name_, *orders_);
  worker.drain();
  const auto letters = anew.dead_letters().get();
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_NE(letters[0].reason.find("another order in the database"), std::string::npos);
  EXPECT_EQ(orders_->page(name_, 0, 10).size(), 5U);
}

TEST_F(SaleWorker, ADatabaseThatHasTheSaleWithAnotherStockIsRefused) {
  orders_->add_sale(name_, 77);
  buy_many(1);
  try {
    OrderWorker{*store_, sale_, *orders_, quick()}.drain();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch);
  }
  EXPECT_EQ(waiting(), 1);
}

TEST_F(SaleWorker, ManyMayOpenANewDatabaseAtTheSameMoment) {
  for (int round = 0; round < 30; ++round) {
    const auto url = "sqlite:" + (folder_ / ("new" + std::to_string(round))).string();
    std::atomic<int> ready{0};
    std::vector<std::future<void>> openings;
    for (int i = 0; i < 6; ++i)
      openings.push_back(std::async(std::launch::async, [&] {
        ++ready;
        while (ready < 6) std::this_thread::yield();
        open_order_store(url)->add_sale(name_, 10);
      }));
    for (auto& opening : openings) EXPECT_NO_THROW(opening.get());
  }
}

/// Trouble with the database in mid-sale: admission goes on, the orders wait, and all arrive when
/// it is over.
class SaleTrouble : public SaleWorker {
 protected:
  /// `begin` makes trouble, `end` mends it.
  void expect_patience(const std::function<void()>& begin, const std::function<void()>& end,
                       const std::string& says) {
    OrderWorker worker{*store_, sale_, *orders_, quick()};
    std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
    buy_many(100);
    wait_until([&] { return waiting() == 0; });

    begin();
    buy_many(100);
    wait_until([&] { return worker.progress().last_failure.find(says) != std::string::npos; });
    buy_many(100);
    EXPECT_EQ(waiting(), 200);
    EXPECT_EQ(worker.progress().inserted, 100U);

    end();
    wait_until([&] { return waiting() == 0; });
    thread.request_stop();
    thread.join();
    EXPECT_EQ(worker.progress().inserted, 300U);
    EXPECT_EQ(worker.progress().dead, 0U);
    test::expect_clean(*store_, sale_, *open_order_store(url_));
  }

  /// A database is three files in WAL mode, which cannot be moved at once: so all is in the one
  /// that is.
  void move_away(const std::filesystem::path& to) const {
    {
      soci::session other{soci::sqlite3, "db=" + file_.string() + " timeout=10"};
      other << "PRAGMA wal_checkpoint(TRUNCATE)";
    }
    std::filesystem::rename(file_, to);
    for (const auto* const suffix : {"-wal", "-shm"})
      std::filesystem::remove(file_.string() + suffix);
  }

  std::filesystem::path file_ = folder_ / "orders.db";
};

TEST_F(SaleTrouble, ALockedDatabase) {
  soci::session other;
  expect_patience(
      [&] {
        other.open(soci::sqlite3, "db=" + file_.string());
        other << "PRAGMA busy_timeout = 10000";
        other << "BEGIN EXCLUSIVE";
      },
      [&] { other << "ROLLBACK"; }, "locked");
}

TEST_F(SaleTrouble, ADatabaseThatWasMovedAway) {
  const auto away = folder_ / "away.db";
  expect_patience([&] { move_away(away); }, [&] { std::filesystem::rename(away, file_); },
                  "deleted or replaced");
}

// The open file of a deleted database takes writes without complaint.
TEST_F(SaleTrouble, ADatabaseWhoseFileAloneWasMovedAway) {
  const auto away = folder_ / "away.db";
  expect_patience([&] { std::filesystem::rename(file_, away); },
                  [&] { std::filesystem::rename(away, file_); }, "deleted or replaced");
}

TEST_F(SaleTrouble, ADatabaseThatWasReplacedByRubbish) {
  const auto away = folder_ / "away.db";
  expect_patience(
      [&] {
        move_away(away);
        std::ofstream{file_} << std::string(8192, 'x');
      },
      [&] { std::filesystem::rename(away, file_); }, "not a database");
}

// A read-only file is none for root, whom tests may run as; so the database itself refuses.
TEST_F(SaleTrouble, ADatabaseThatTakesNoWrites) {
  soci::session other{soci::sqlite3, "db=" + file_.string() + " timeout=10"};
  expect_patience(
      [&] {
        other << "CREATE TRIGGER no_writes BEFORE UPDATE ON sale_stock BEGIN"
                 " SELECT RAISE(ABORT, 'attempt to write a readonly database'); END";
      },
      [&] { other << "DROP TRIGGER no_writes"; }, "readonly");
}

}  // namespace
}  // namespace sluice
