// What happens between a loss and its recovery: stock changes, cancels, sellers that start, the
// wrong database. Whatever the history, what is known stays its buyer's, and the audit is clean.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "engine/embedded_store.hpp"
#include "sale/records.hpp"
#include "sale/settlement.hpp"
#include "sale/streams.hpp"
#include "sale/watched_orders.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/comes_true.hpp"
#include "support/faulty_store.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr const char* keys[] = {"{s}:sale",     "{s}:buyers", "{s}:requests",
                                "{s}:returned", "{s}:orders", "{s}:dead"};
constexpr const char* stream = "{s}:orders";

/// All that a store has of the sale.
class Backup {
 public:
  explicit Backup(Store& store) {
    for (const auto* const key : {keys[0], keys[1], keys[2], keys[3]}) {
      std::vector<std::string> words{"HSET", key};
      const auto fields = store.run({"HGETALL", key}).get();
      for (const auto& word : fields.as_items()) words.push_back(word.as_text());
      if (words.size() > 2) commands_.push_back(std::move(words));
    }
    const auto entries = store.run({"XRANGE", stream, "-", "+"}).get();
    for (const auto& entry : entries.as_items()) {
      std::vector<std::string> words{"XADD", stream, entry.as_items().at(0).as_text()};
      for (const auto& word : entry.as_items().at(1).as_items()) words.push_back(word.as_text());
      commands_.push_back(std::move(words));
    }
    commands_.push_back({"XGROUP", "CREATE", stream, "workers", "0", "MKSTREAM"});
  }

  /// As a server that was started again: the gate is shut.
  void bring_back(Store& store) const {
    for (const auto* const key : keys) store.run({"DEL", key}).get();
    for (const auto& command : commands_) {
      const std::vector<std::string_view> words{command.begin(), command.end()};
      store.run(Words{words}).get();
    }
    store.run({"HSET", keys[0], "store", "gone"}).get();
  }

 private:
  std::vector<std::vector<std::string>> commands_;
};

class SaleHeals : public testing::Test {
 protected:
  Admission buy(const std::string& buyer, const std::string& request, std::int64_t units = 1) {
    return sale_->buy({buyer}, {request}, units).get();
  }
  void work() { OrderWorker{*store_, *sale_, *orders_}.drain(); }
  void load() { sale_.emplace(std::move(*Sale::load(*store_, "s").get())); }
  SaleRecovery heal() {
    auto done = recover(*store_, "s", *orders_, {.new_store = true});
    load();
    return done;
  }
  void expect_clean(SaleState state = SaleState::open) {
    if (state != SaleState::archived) work();
    load();
    const auto status = sale_->status().get();
    EXPECT_EQ(to_string(status.state), to_string(state));
    EXPECT_EQ(status.dead, 0);
    const auto stock = orders_->stock("s");
    EXPECT_EQ(status.stock, stock->initial + stock->changed);
    EXPECT_EQ(status.left(), stock->left);
    const auto found = audit(*store_, *sale_, *orders_);
    for (const auto& check : found.checks)
      EXPECT_TRUE(check.ok) << check.name << ": " << check.figure << ", expected " << check.expected
                            << " (" << check.detail << ")";
  }
  /// `deed` is refused, says so, and changes neither store nor database.
  template <class Deed>
  void expect_refused(Errc code, const std::string& says, const Deed& deed) {
    const auto before = figures();
    try {
      deed();
      ADD_FAILURE() << "expected: " << says;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), code) << error.what();
      EXPECT_EQ(error.effect(), Effect::none) << error.what();
      EXPECT_NE(error.message().find(says), std::string::npos) << error.what();
    }
    EXPECT_EQ(figures(), before);
  }
  std::vector<std::string> figures() {
    std::vector<std::string> all;
    const auto reply =
        store_->run({"HMGET", keys[0], "capacity", "sold", "changes", "given_back"}).get();
    for (const auto& one : reply.as_items()) all.push_back(to_string(one));
    const auto totals = orders_->totals("s");
    for (const auto figure : {totals.stock.left, totals.stock.changed, totals.orders, totals.units,
                              totals.changes, totals.last_change})
      all.push_back(std::to_string(figure));
    return all;
  }

  VirtualClock clock_{WallTime{1'767'369'597s}};
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  SaleDefinition definition_{.name = "s", .stock = 40, .limit = 0, .number_type = "MT"};
  std::optional<Sale> sale_ = Sale::create(*store_, definition_).get();
  std::unique_ptr<OrderStore> orders_ = open_order_store("sqlite::memory:");
};

TEST_F(SaleHeals, M1_AChangeOfTheStockBetweenARestartAndTheRecoveryIsRefused) {
  buy("ann", "r");
  work();
  const Backup backup{*store_};
  EXPECT_TRUE(sale_->change_stock(*orders_, 20));
  backup.bring_back(*store_);
  expect_refused(Errc::server, "sluice sale recover", [&] { sale_->change_stock(*orders_, 25); });
  expect_refused(Errc::server, "sluice sale recover",
                 [&] { sale_->cancel(*orders_, {"ann"}, {"r"}, ""); });
  EXPECT_EQ(buy("bob", "r").outcome, SaleOutcome::recovering);
  heal();
  EXPECT_EQ(sale_->status().get().stock, 20);
  EXPECT_TRUE(sale_->change_stock(*orders_, 25));
  EXPECT_EQ(buy("bob", "r", 24).outcome, SaleOutcome::admitted);
  expect_clean(SaleState::sold_out);
}

// An older program changed it all the same, by the wrong base.
TEST_F(SaleHeals, M1_TheStockIsWhatTheDatabaseSays) {
  buy("ann", "r");
  EXPECT_TRUE(sale_->change_stock(*orders_, 20));
  EXPECT_TRUE(sale_->change_stock(*orders_, 25));
  store_->run({"HSET", keys[0], "capacity", "45"}).get();
  heal();
  EXPECT_EQ(sale_->status().get().stock, 25);
  expect_clean();
}

TEST_F(SaleHeals, M4_TheSaleAloneIsLostAndCreatedAgain) {
  for (const bool created : {true, false}) {
    SCOPED_TRACE(created);
    store_ = engine::open_embedded({.clock = &clock_});
    orders_ = open_order_store("sqlite::memory:");
    sale_.emplace(Sale::create(*store_, definition_).get());
    for (const auto* const buyer : {"a", "b"}) buy(buyer, "r");
    work();
    const auto on_the_way = *buy("c", "r").order;
    const auto last = *buy("d", "r").order;
    store_->run({"DEL", keys[0]}).get();
    if (created) Sale::create(*store_, definition_).get();
    heal();
    const auto next = *buy("e", "r").order;
    EXPECT_EQ(next.number.substr(10), "0005");
    EXPECT_GT(next.id, last.id);
    EXPECT_EQ(buy("c", "r").order, on_the_way);
    expect_clean();
  }
}

TEST_F(SaleHeals, W1_ASaleWhoseLaneAnotherHasTakenGetsANewOne) {
  buy("a", "r");
  work();
  store_->run({"FLUSHALL"}).get();
  auto other = Sale::create(*store_, {.name = "t", .stock = 9, .number_type = "TT"}).get();
  heal();
  const auto ours = *buy("b", "r").order;
  const auto theirs = *other.buy({"b"}, {"r"}).get().order;
  EXPECT_NE(ours.id >> 20 & 0xfff, theirs.id >> 20 & 0xfff);
  expect_clean();
  const auto lane = ours.id >> 20 & 0xfff;
  heal();
  EXPECT_EQ(buy("c", "r").order->id >> 20 & 0xfff, lane) << "and keeps it";
  expect_clean();
}

TEST_F(SaleHeals, W2_AnOrderThatIsLostForGoodLeavesAPlaceOfItsBuyerFree) {
  buy("a", "r");
  work();
  buy("b", "x1");
  buy("b", "x2");
  sale_->cancel(*orders_, {"b"}, {"x2"}, "");
  store_->run({"FLUSHALL"}).get();
  EXPECT_EQ(heal().gaps, 1);
  expect_clean();
  EXPECT_EQ(buy("b", "x1").outcome, SaleOutcome::admitted);
  expect_clean();
  heal();
  expect_clean();
  EXPECT_TRUE(sale_->archive(*orders_));
}

TEST_F(SaleHeals, W4_APartOfTheKeysIsLost) {
  for (unsigned lost = 1; lost < 32; ++lost) {
    SCOPED_TRACE(lost);
    store_ = engine::open_embedded({.clock = &clock_});
    orders_ = open_order_store("sqlite::memory:");
    sale_.emplace(Sale::create(*store_, definition_).get());
    buy("a", "r1");
    buy("a", "r2", 2);
    buy("b", "r", 3);
    work();
    sale_->cancel(*orders_, {"a"}, {"r1"}, "");
    buy("c", "r1", 4);
    buy("c", "r2", 5);
    sale_->cancel(*orders_, {"c"}, {"r1"}, "");
    for (unsigned i = 0; i < 5; ++i)
      if (lost >> i & 1) store_->run({"DEL", keys[i]}).get();
    heal();
    expect_clean();
    const bool knows_c = (lost & 0b10010) != 0b10010;  // its record, or its entry
    EXPECT_EQ(sale_->status().get().sold, knows_c ? 10 : 5);
    EXPECT_EQ(heal().restored, 0);
    expect_clean();
    if (HasFailure()) return;
  }
}

// Its list of changes is behind the store's.
TEST_F(SaleHeals, M2_ADatabaseThatWasRestoredGetsTheStocksChangesFromTheStore) {
  const test::TempDir folder;
  const auto file = (folder / "orders.db").string();
  orders_ = open_order_store("sqlite:" + file);
  buy("ann", "r", 5);
  work();
  EXPECT_TRUE(sale_->change_stock(*orders_, 20));
  orders_.reset();
  std::filesystem::copy_file(file, folder / "old.db");
  orders_ = open_order_store("sqlite:" + file);
  EXPECT_TRUE(sale_->change_stock(*orders_, 30));
  buy("bob", "r", 20);
  work();
  orders_.reset();
  std::filesystem::copy_file(folder / "old.db", file,
                             std::filesystem::copy_options::overwrite_existing);
  orders_ = open_order_store("sqlite:" + file);
  expect_refused(Errc::server, "sluice sale recover", [&] { sale_->change_stock(*orders_, 10); });
  expect_refused(Errc::server, "sluice sale recover",
                 [&] { sale_->cancel(*orders_, {"bob"}, {"r"}, ""); });
  EXPECT_EQ(buy("cid", "r").outcome, SaleOutcome::recovering) << "SV18: it was noticed";
  EXPECT_EQ(heal().sent_again, 1);
  EXPECT_EQ(sale_->status().get().stock, 30);
  EXPECT_FALSE(sale_->change_stock(*orders_, 10)) << "25 are sold";
  EXPECT_TRUE(sale_->change_stock(*orders_, 40));
  expect_clean();
}

// Each finds that it has come less far than the store knows, and would take the sale back from the
// other one for ever.
TEST_F(SaleHeals, SV18_OfTwoCopiesOfADatabaseThatAreServedOneGoesOn) {
  const test::TempDir folder;
  const std::string files[] = {(folder / "first.db").string(), (folder / "copy.db").string()};
  orders_ = open_order_store("sqlite:" + files[0]);
  buy("ann", "r");
  work();
  orders_.reset();
  std::filesystem::copy_file(files[0], files[1]);
  int recoveries = 0;
  std::map<std::string, int> served;
  std::string refused;
  for (int i = 0; i < 8; ++i) {
    orders_ = open_order_store("sqlite:" + files[i % 2]);
    buy(std::to_string(i), "r");
    clock_.advance(1s);
    try {
      if (sale::recover_if_needed(*store_, "s", *orders_)) ++recoveries;
      sale_->settle(*orders_);
      if (sale::recover_if_needed(*store_, "s", *orders_)) ++recoveries;
      work();
      ++served[files[i % 2]];
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::config_mismatch) << error.what();
      refused = error.message();
    }
  }
  EXPECT_LE(recoveries, 1);
  EXPECT_EQ(served[files[1]], 4) << "it has taken the sale over, once";
  EXPECT_LE(served[files[0]], 1);
  for (const auto& file : files) EXPECT_NE(refused.find(file), std::string::npos) << refused;
  orders_ = open_order_store("sqlite:" + files[1]);
  expect_clean();
}

TEST_F(SaleHeals, M2_M7_AnotherDatabaseIsRefused) {
  buy("ann", "r", 5);
  work();
  buy("bob", "r");
  const auto right = std::move(orders_);
  orders_ = open_order_store("sqlite::memory:");
  const char* const says = "--new-database";
  const auto refused = [&](const auto& deed) {
    try {
      deed();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::config_mismatch) << error.what();
      EXPECT_NE(error.message().find(says), std::string::npos) << error.what();
    }
  };
  for (const bool is_remembered : {true, false}) {  // by a store of an older version
    if (!is_remembered) store_->run({"HDEL", keys[0], "database"}).get();
    refused([&] { sale_->change_stock(*orders_, 30); });
    refused([&] { sale_->cancel(*orders_, {"ann"}, {"r"}, ""); });
    refused([&] { sale_->settle(*orders_); });
    refused([&] { sale_->close(*orders_); });
    refused([&] { sale_->archive(*orders_); });
    if (is_remembered) {
      refused([&] { work(); });
      refused([&] { Sale::create(*store_, definition_, *orders_); });
      refused([&] { recover(*store_, "s", *orders_); });
    }
    EXPECT_FALSE(orders_->stock("s")) << "it does not even learn of the sale";
  }
  EXPECT_EQ(sale_->status().get().sold, 6);
  orders_ = open_order_store("sqlite::memory:");
  const auto done = recover(*store_, "s", *orders_, {.new_database = true});
  EXPECT_EQ(done.sent_again, 1);
  expect_clean();
}

// No reply of the store says that it was brought back while it ran.
TEST_F(SaleHeals, M5_AStoreThatGoesBackWhileItRunsStopsAtTheFirstNumbersThatAreGivenTwice) {
  for (const bool recovers : {true, false}) {
    SCOPED_TRACE(recovers);
    store_ = engine::open_embedded({.clock = &clock_});
    orders_ = open_order_store("sqlite::memory:");
    sale_.emplace(Sale::create(*store_, definition_).get());
    buy("a", "r");
    work();
    const Backup backup{*store_};
    const auto told = *buy("b", "r").order;
    buy("c", "r");
    work();
    backup.bring_back(*store_);
    store_->run({"HDEL", keys[0], "store"}).get();
    EXPECT_EQ(buy("x", "r").order->number, told.number);
    OrderWorker{*store_, *sale_, *orders_, {.recovers = recovers}}.drain();
    if (!recovers) EXPECT_EQ(buy("y", "r").outcome, SaleOutcome::recovering);
    heal();
    const auto next = *buy("y", "r").order;
    EXPECT_EQ(next.number.substr(10), "0004") << "a, b and c have those before";
    EXPECT_EQ(sale_->status().get().dead, 1) << "what x was told, too";
    for (const auto& letter : sale_->dead_letters().get())
      sale_->give_back(*orders_, letter.id, "its number was told before");
    expect_clean();
  }
}

TEST_F(SaleHeals, M3_ASaleThatIsOverStaysSo) {
  for (const bool archived : {false, true}) {
    for (const bool is_empty : {false, true}) {
      SCOPED_TRACE(archived);
      store_ = engine::open_embedded({.clock = &clock_});
      orders_ = open_order_store("sqlite::memory:");
      sale_.emplace(Sale::create(*store_, definition_).get());
      buy("ann", "r");
      work();
      const Backup backup{*store_};
      sale_->close(*orders_);
      EXPECT_EQ(archived && sale_->archive(*orders_), archived);
      if (is_empty)
        store_->run({"FLUSHALL"}).get();
      else
        backup.bring_back(*store_);
      heal();
      EXPECT_EQ(buy("bob", "r").outcome, SaleOutcome::closed);
      EXPECT_EQ(buy("ann", "r").outcome, archived ? SaleOutcome::closed : SaleOutcome::repeated);
      expect_clean(archived ? SaleState::archived : SaleState::closed);
      EXPECT_EQ(sale_->archive(*orders_), !archived);
    }
  }
}

// Closed in the store alone: a worker tells the database.
TEST_F(SaleHeals, M3_AWorkerNotesThatASaleIsClosed) {
  buy("ann", "r");
  sale_->close().get();
  work();
  store_->run({"FLUSHALL"}).get();
  heal();
  EXPECT_EQ(buy("bob", "r").outcome, SaleOutcome::closed);
  expect_clean(SaleState::closed);
}

TEST_F(SaleHeals, M5_ASellerThatKnowsTheDatabaseDoesNotSellTwice) {
  buy("ann", "r", 20);
  work();
  store_->run({"FLUSHALL"}).get();
  expect_refused(Errc::config_mismatch, "--new-store",
                 [&] { Sale::create(*store_, definition_, *orders_); });
  heal();
  EXPECT_EQ(buy("bob", "r").order->number.substr(10), "0002");
  sale_.emplace(Sale::create(*store_, definition_, *orders_));
  expect_clean();
}

TEST_F(SaleHeals, SV02_ACopyOfAStoreThatIsRecoveredFencesTheOriginal) {
  buy("ann", "r");
  work();
  const Backup copy{*store_};
  const auto other = engine::open_embedded({.clock = &clock_});
  copy.bring_back(*other);
  recover(*other, "s", *orders_);
  buy("bob", "r");
  const auto is_refused = [&](const auto& deed) {
    try {
      deed();
      ADD_FAILURE() << "it was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::config_mismatch) << error.what();
    }
  };
  is_refused([&] { work(); });
  EXPECT_EQ(buy("cid", "r").outcome, SaleOutcome::recovering);
  is_refused([&] { recover(*store_, "s", *orders_); });
  heal();
  EXPECT_EQ(buy("cid", "r").outcome, SaleOutcome::admitted);
  expect_clean();
  auto sale = *Sale::load(*other, "s").get();
  is_refused([&] { OrderWorker{*other, sale, *orders_}.drain(); });
  EXPECT_EQ(sale.buy({"dan"}, {"r"}).get().outcome, SaleOutcome::recovering);
}

// As each server does at its start, while the workers have been at work for long.
TEST_F(SaleHeals, M4_AWorkerThatIsAtWorkSeesThatTheSaleWasMadeAgain) {
  store_ = engine::open_embedded({});
  sale_.emplace(Sale::create(*store_, definition_).get());
  buy("ann", "r");
  OrderWorker worker{*store_, *sale_, *orders_, {.idle_wait = 1ms, .claim_after = 10ms}};
  std::jthread working{[&](std::stop_token stop) { worker.run(stop); }};
  EXPECT_TRUE(test::comes_true([&] { return worker.progress().inserted == 1; }));
  store_->run({"DEL", keys[0]}).get();
  auto again = Sale::create(*store_, definition_).get();
  const bool sold = again.buy({"cid"}, {"r"}).get().has_order();  // or the worker was quicker
  EXPECT_TRUE(
      test::comes_true([&] { return again.status().get().state == SaleState::recovering; }));
  working.request_stop();
  working.join();
  EXPECT_EQ(orders_->page("s", -1, 10).size(), 1U) << "what the new one sold does not get in";
  heal();
  EXPECT_EQ(buy("bob", "r").order->number.substr(10), "0002");
  EXPECT_TRUE(test::comes_true([&] {  // the entry was read before, and is pending
    OrderWorker{*store_, *sale_, *orders_, {.claim_after = 1ms}}.drain();
    return !sold || sale_->status().get().dead == 1;
  }));
  for (const auto& letter : sale_->dead_letters().get())
    EXPECT_TRUE(sale_->give_back(*orders_, letter.id, "sold twice")->now);
  heal();
  expect_clean();
}

TEST_F(SaleHeals, AWorkerThatBeganBeforeItsSaleWasThereBringsItsOrdersIn) {
  store_ = engine::open_embedded({});
  OrderWorker worker{*store_, *sale_, *orders_, {.idle_wait = 1ms, .longest_pause = 50ms}};
  std::jthread working{[&](std::stop_token stop) { worker.run(stop); }};
  EXPECT_TRUE(test::comes_true([&] { return worker.progress().failures > 0; }));
  sale_.emplace(Sale::create(*store_, definition_).get());
  buy("ann", "r");
  EXPECT_TRUE(test::comes_true([&] { return worker.progress().inserted == 1; }));
}

TEST_F(SaleHeals, M5_WhatWasSoldTwiceIsSettled) {
  for (const auto* const buyer : {"a", "b", "c"}) buy(buyer, "r", 10);
  work();
  const auto first = *buy("a", "r", 10).order;
  store_->run({"FLUSHALL"}).get();
  clock_.advance(2s);
  sale_.emplace(Sale::create(*store_, definition_).get());
  for (const auto* const buyer : {"x", "y"}) buy(buyer, "r", 10);
  buy("y", "r2", 10);
  EXPECT_NE(buy("a", "r", 10).order, first) << "told to him a second time";
  EXPECT_THROW(work(), Error);
  heal();
  EXPECT_EQ(buy("a", "r", 10).order, first);
  work();
  EXPECT_EQ(sale_->status().get().sold, 60);
  EXPECT_EQ(sale_->status().get().dead, 3) << "their numbers are of others";
  for (const auto& letter : sale_->dead_letters().get()) {
    const auto ended = sale_->give_back(*orders_, letter.id, "sold twice");
    ASSERT_TRUE(ended && ended->order);
    EXPECT_TRUE(ended->now);
  }
  expect_clean();
  EXPECT_EQ(sale_->status().get().sold, 30);
  EXPECT_EQ(buy("x", "r", 5).outcome, SaleOutcome::admitted) << "as if he had never asked";
  expect_clean();
  heal();
  expect_clean();
  EXPECT_TRUE(sale_->archive(*orders_));
}

TEST_F(SaleHeals, W3_ADatabaseIsLostWithAnOrderThatEnded) {
  for (const auto* const buyer : {"a", "b", "c"}) buy(buyer, "r");
  work();
  sale_->cancel(*orders_, {"b"}, {"r"}, "");
  sale_->change_stock(*orders_, 30);
  orders_ = open_order_store("sqlite::memory:");
  const auto done = recover(*store_, "s", *orders_, {.new_database = true});
  EXPECT_EQ(done.sent_again, 2);
  EXPECT_EQ(done.ended_again, 1);
  EXPECT_EQ(done.gaps, 0);
  expect_clean();
  EXPECT_FALSE(sale_->cancel(*orders_, {"b"}, {"r"}, "").now);
  EXPECT_TRUE(sale_->archive(*orders_));
}

// The units that came back are sold to somebody else: were they forgotten, more is sold than there
// is, and an order that was told becomes a dead letter.
TEST_F(SaleHeals, W3_ADatabaseIsLostWithPartsOfOrdersThatCameBackAndWereSoldAgain) {
  for (const std::int64_t first : {2, 5, 20}) {
    SCOPED_TRACE(first);
    store_ = engine::open_embedded({.clock = &clock_});
    orders_ = open_order_store("sqlite::memory:");
    sale_.emplace(Sale::create(*store_, definition_).get());
    const auto stock = definition_.stock;
    buy("ann", "r", first);
    if (first < stock) buy("bob", "r", stock - first);
    work();
    sale_->cancel_units(*orders_, {"ann"}, {"r"}, 1, "k");
    ASSERT_EQ(buy("cid", "r", 1).outcome, SaleOutcome::admitted);
    orders_ = open_order_store("sqlite::memory:");
    recover(*store_, "s", *orders_, {.new_database = true});
    expect_clean(SaleState::sold_out);
    EXPECT_EQ(sale_->status().get().sold, stock);
    sale_->cancel_units(*orders_, {"ann"}, {"r"}, 0, "all that are left");
    expect_clean();
  }
}

// In place of his first order, which the database has, an empty store gave him another one under
// another request.
TEST_F(SaleHeals, ABuyerWhoWasSoldAnotherFirstOrderGetsTheOneOfTheDatabaseAtEachRequest) {
  for (const std::int64_t limit : {0, 1}) {
    SCOPED_TRACE(limit);
    definition_.limit = limit;
    store_ = engine::open_embedded({.clock = &clock_});
    orders_ = open_order_store("sqlite::memory:");
    sale_.emplace(Sale::create(*store_, definition_).get());
    const auto first = buy("ann", "r").order;
    work();
    store_->run({"FLUSHALL"}).get();
    sale_.emplace(Sale::create(*store_, definition_).get());
    const auto other = buy("ann", "other").order;
    heal();
    EXPECT_EQ(buy("ann", "r").order, first) << "before the dead letter is settled";
    EXPECT_EQ(buy("ann", "other").order, other);
    EXPECT_EQ(store_->run({"HGET", keys[0], "buyer_gaps"}).get().as_text(), "0");
    work();
    const auto letters = sale_->dead_letters().get();
    ASSERT_EQ(letters.size(), 1U);
    EXPECT_TRUE(sale_->give_back(*orders_, letters.front().id, "sold twice")->now);
    EXPECT_EQ(buy("ann", "r").outcome, SaleOutcome::repeated) << "after it, before a recovery";
    EXPECT_EQ(buy("ann", "r").order, first);
    expect_clean();
    heal();
    EXPECT_EQ(buy("ann", "r").order, first);
    EXPECT_EQ(buy("ann", "one more").outcome,
              limit == 0 ? SaleOutcome::admitted : SaleOutcome::already_bought);
    expect_clean();
  }
}

// An empty store has sold to him anew, under the same request as his second order: the worker would
// give the database another order of that request.
TEST_F(SaleHeals, AWorkerBringsNothingInOfASaleThatWasLostAndMadeAgainBeforeItIsRecovered) {
  const auto first = buy("ann", "r").order;
  work();
  store_->run({"FLUSHALL"}).get();
  clock_.advance(1s);
  sale_.emplace(Sale::create(*store_, definition_).get());
  buy("ann", "other");
  buy("ann", "r");
  const auto second = buy("bob", "r").order;
  expect_refused(Errc::config_mismatch, "sluice sale recover", [&] { work(); });
  EXPECT_EQ(orders_->page("s", -1, 10).size(), 1U);
  heal();
  EXPECT_EQ(buy("ann", "r").order, first);
  work();
  EXPECT_EQ(buy("bob", "r").order, second);
  for (const auto& letter : sale_->dead_letters().get())
    sale_->give_back(*orders_, letter.id, "sold twice");
  heal();
  expect_clean();
  EXPECT_EQ(orders_->page("s", -1, 10).size(), 2U);
}

TEST_F(SaleHeals, T7_AnEntryThatContradictsTheStoreIsADeadLetterAndTheOrderGetsInAllTheSame) {
  const auto order = *buy("ann", "r", 2).order;
  const auto record = store_->run({"HGET", keys[1], "ann"}).get().as_text();
  auto forged = record.substr(record.find('a'));
  const auto another = "a 1 9999 XX20260102" + forged.substr(forged.find(" 2 1767") - 4);
  forged.replace(forged.find(" 2 1767"), 3, " 9 ");
  store_->run({"DEL", stream}).get();
  store_->run({"XADD", stream, "*", "order", forged, "buyer", "ann"}).get();
  store_->run({"XADD", stream, "*", "order", another, "buyer", "nobody"}).get();
  load();
  sale_.emplace(Sale::create(*store_, definition_).get());  // makes the group again
  work();
  EXPECT_TRUE(orders_->page("s", -1, 10).empty());
  const auto letters = sale_->dead_letters().get();
  ASSERT_EQ(letters.size(), 2U);
  EXPECT_EQ(letters[0].reason,
            "the store's record of its request has another order: units is 2 there");
  EXPECT_EQ(letters[1].reason,
            "it has a number of another sale: here they are MT, a day and 4 digits");
  EXPECT_EQ(heal().sent_again, 1) << "what lies in its place is another one";
  work();
  EXPECT_EQ(orders_->page("s", -1, 10), std::vector<SaleOrder>{order});
  for (const auto& letter : letters) {
    const auto ended = sale_->give_back(*orders_, letter.id, "forged");
    EXPECT_TRUE(ended && !ended->order) << "nothing is given back";
  }
  expect_clean();
}

// A script's own error names no field, and what is no number at all ("nan" is below no stock) sold
// on.
TEST_F(SaleHeals, AFigureThatNoSaleWritesIsNamedAndMended) {
  const auto order = buy("ann", "r").order;
  work();
  for (const auto* const field :
       {"capacity", "sold", "limit", "opens", "closes", "type", "digits", "last", "day", "taken",
        "second", "sequence", "orders", "lane", "unit_limit", "epoch"}) {
    for (const auto* const value : {"rubbish", "nan", "inf", "-0.5", "1e300", ""}) {
      const std::string_view name{field};
      const bool is_bound = name == "opens" || name == "closes";
      if (is_bound && std::string_view{"-0.5 inf nan 1e300"}.find(value) != std::string_view::npos)
        continue;  // any instant, or none
      if (name == "type") {
        store_->run({"HDEL", keys[0], field}).get();
      } else {
        store_->run({"HSET", keys[0], field, value}).get();
      }
      SCOPED_TRACE(fmt::format("{} is '{}'", field, value));
      try {
        buy("bob", "r");
        ADD_FAILURE();
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::corrupt) << error.what();
        EXPECT_EQ(error.effect(), Effect::none);
        EXPECT_NE(error.message().find(fmt::format("its {} is '", field)), std::string::npos)
            << error.what();
        EXPECT_NE(error.message().find("'sluice sale recover s'"), std::string::npos);
      }
      heal();
      EXPECT_EQ(buy("ann", "r").order, order);
      if (HasFailure()) return;
    }
  }
  expect_clean();
}

// Two numbers were given once more, and then an older store came back with a third order behind
// them: the next number follows that one, though the last order has a smaller one.
TEST_F(SaleHeals, NumbersGoOnBehindTheHighestAlsoWhereALaterOrderHasASmallerOne) {
  work();
  for (const auto* const buyer : {"a", "b", "c"}) buy(buyer, "r");
  const Backup backup{*store_};
  store_->run({"DEL", keys[0], keys[1], stream}).get();
  heal();
  clock_.advance(1s);
  for (const auto* const buyer : {"x", "y"}) buy(buyer, "r");
  work();
  backup.bring_back(*store_);
  heal();
  work();
  for (const auto& letter : sale_->dead_letters().get())
    EXPECT_TRUE(sale_->give_back(*orders_, letter.id, "sold twice")->now);
  EXPECT_EQ(heal().in_database, 3);
  expect_clean();
  EXPECT_EQ(buy("d", "r").order->number.substr(10), "0004");
  expect_clean();
}

// What lies in the database alone, the store has in its sale alone.
TEST_F(SaleHeals, ASaleWhoseDatabaseNeverLearnedItIsListedAgain) {
  buy("ann", "r");
  const Backup backup{*store_};
  store_->run({"FLUSHALL"}).get();
  backup.bring_back(*store_);
  heal();
  EXPECT_FALSE(orders_->definition("s").empty());
  expect_clean();
}

// Left by a record that was lost, and made anew by the same request.
TEST_F(SaleHeals, AnOrderThatStandsTwiceInTheStoreIsCountedOnce) {
  buy("ann", "r");
  work();
  const auto record = store_->run({"HGET", keys[1], "ann"}).get().as_text();
  const auto order = record.substr(4, record.size() - 5);  // without its counts and its request
  store_->run({"HSET", keys[2], "3:annr", order}).get();
  heal();
  EXPECT_EQ(store_->run({"EXISTS", keys[2]}).get().as_integer(), 0);
  EXPECT_EQ(sale_->status().get().orders, 1);
  expect_clean();
}

/// Random histories: each kind of loss, each kind of deed before the recovery, killed anywhere.
/// SLUICE_SEED begins with another one, SLUICE_LONG tries so many times as many.
TEST_F(SaleHeals, WhateverWasLostAndWhateverWasTriedBeforeTheRecovery) {
  const auto* const given = std::getenv("SLUICE_SEED");
  const auto* const factor = std::getenv("SLUICE_LONG");
  const auto first = given ? static_cast<unsigned>(std::stoul(given)) : 1U;
  const auto rounds = test::rounds(20U) * (factor ? static_cast<unsigned>(std::stoul(factor)) : 1U);
  std::cout << "SLUICE_SEED=" << first << " for the first of " << rounds << '\n';
  for (unsigned seed = first; seed < first + rounds; ++seed) {
    SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
    std::mt19937 random{seed};
    const auto pick = [&](int most) {
      return static_cast<int>(random() % static_cast<unsigned>(most));
    };
    const test::TempDir folder;
    const auto file = (folder / "orders.db").string();
    const bool database_is_lost = pick(4) == 0;
    const auto url = database_is_lost ? "sqlite:" + file : "sqlite::memory:";
    orders_.reset();
    store_ = engine::open_embedded({.clock = &clock_});
    orders_ = open_order_store(url);
    definition_.limit = pick(4);
    sale_.emplace(Sale::create(*store_, definition_).get());

    std::map<std::pair<std::string, std::string>, SaleOrder> told;
    const auto deed = [&] {
      const auto buyer = "b" + std::to_string(pick(5));
      const auto request = "r" + std::to_string(pick(12));
      try {
        switch (pick(8)) {
          case 0: sale_->cancel(*orders_, {buyer}, {request}, "why"); break;
          case 1: sale_->change_stock(*orders_, 20 + pick(30)); break;
          case 2: work(); break;
          case 3: clock_.advance(std::chrono::milliseconds{pick(3000)}); break;
          default: {
            const auto units = 1 + pick(3);
            const auto answer = buy(buyer, request, units);
            if (answer.has_order()) told.insert_or_assign({buyer, request}, *answer.order);
          }
        }
      } catch (const Error&) {  // refused: what matters is what it leaves behind
      }
    };
    for (int losses = 0; losses < 3; ++losses) {
      SCOPED_TRACE("loss " + std::to_string(losses));
      for (int i = pick(15); i > 0; --i) deed();
      const Backup backup{*store_};
      if (database_is_lost) {
        orders_->identity();
        orders_.reset();
        std::filesystem::copy_file(file, folder / "old.db",
                                   std::filesystem::copy_options::overwrite_existing);
        orders_ = open_order_store(url);
      }
      for (int i = pick(15); i > 0; --i) deed();

      const int loss = pick(4);
      if (loss == 0) backup.bring_back(*store_);
      if (loss == 1) {
        store_->run({"FLUSHALL"}).get();
        if (orders_->definition("s").empty())
          sale_.emplace(Sale::create(*store_, definition_).get());
      }
      const bool has_definition = !orders_->definition("s").empty();
      const auto parts = static_cast<unsigned>(pick(32)) & (has_definition ? ~0U : ~1U);
      if (loss == 2) {
        for (unsigned i = 0; i < 5; ++i)
          if (parts >> i & 1) store_->run({"DEL", keys[i]}).get();
        if ((parts & 1) == 0) store_->run({"HSET", keys[0], "store", "gone"}).get();
      }
      if (loss == 3 && database_is_lost) {
        orders_.reset();
        std::filesystem::copy_file(folder / "old.db", file,
                                   std::filesystem::copy_options::overwrite_existing);
        orders_ = open_order_store(url);
      }
      // What nobody knows any more, nobody can give back.
      std::set<std::int64_t> known;
      if (orders_->stock("s"))
        for (const auto& row : orders_->page("s", -1, 1000)) known.insert(row.id);
      sale::Records records{*store_, definition_};
      std::string from;
      do {
        const auto page = records.scan(from, 1000).get();
        for (const auto& buyer : page.buyers) known.insert(buyer.latest.id);
        for (const auto& order : page.earlier) known.insert(order.id);
        from = page.next;
      } while (!from.empty());
      sale::read_streams(*store_, sale::SaleKeys{"s"}, [&](const auto& page) {
        for (const auto& entry : page) known.insert(entry.order.id);
      });
      std::erase_if(told, [&](const auto& one) { return !known.contains(one.second.id); });

      if (loss != 3)
        for (int i = pick(4); i > 0; --i) {
          const auto buyer = "b" + std::to_string(pick(5));
          const auto request = "r" + std::to_string(pick(12));
          try {
            if (pick(2) == 0)
              sale_->cancel(*orders_, {buyer}, {request}, "while it is shut");
            else
              sale_->change_stock(*orders_, 20 + pick(30));
          } catch (const Error&) {
          }
        }
      std::map<std::pair<std::string, std::string>, SaleOrder> fresh;
      if ((loss == 1 || loss == 2) && pick(2) == 0) {  // a seller starts, and may sell
        sale_.emplace(Sale::create(*store_, definition_).get());
        for (int i = loss == 1 ? pick(12) : 0; i > 0; --i) {
          const auto buyer = "b" + std::to_string(pick(7));
          const auto request = "r" + std::to_string(pick(12));
          const auto answer = buy(buyer, request, 1 + pick(3));
          if (answer.has_order() && !told.contains({buyer, request}))
            fresh.insert_or_assign({buyer, request}, *answer.order);
        }
      }

      struct Killed {};
      int left = pick(60);
      test::FaultyStore mortal{*store_};
      mortal.plan = [&](std::string_view) {
        if (left-- == 0) throw Killed{};
        return test::Fault::none;
      };
      test::WatchedOrders mortal_orders{*orders_};
      mortal_orders.before = [&](std::string_view) {
        if (left-- == 0) throw Killed{};
      };
      try {
        recover(mortal, "s", mortal_orders, {.new_store = true});
      } catch (const Killed&) {
      }
      const auto expect_told = [&] {
        for (const auto& [wish, order] : told) {
          const auto answer = buy(wish.first, wish.second, order.units);
          EXPECT_TRUE(answer.outcome == SaleOutcome::repeated ||
                      answer.outcome == SaleOutcome::cancelled)
              << to_string(answer.outcome);
          ASSERT_TRUE(answer.order);
          EXPECT_EQ(answer.order->id, order.id);
          EXPECT_EQ(answer.order->number, order.number);
        }
      };
      try {
        heal();
        expect_told();
        work();
        if (sale_->status().get().dead > 0) {  // sold once more
          for (const auto& letter : sale_->dead_letters().get()) {
            EXPECT_TRUE(sale_->give_back(*orders_, letter.id, "sold twice")->order);
            fresh.erase({letter.order->buyer.value, letter.order->request.value});
          }
          expect_told();
          heal();
          work();
        }
        // A store that had forgotten a buyer may have let him have more than the limit.
        for (int i = 0; i < 7 && definition_.limit > 0; ++i) {
          const BuyerId buyer{"b" + std::to_string(i)};
          const auto his = records.find(std::span<const BuyerId>{&buyer, 1}).get().front();
          if (!his || his->live <= definition_.limit) continue;
          EXPECT_EQ(loss, 1);
          EXPECT_EQ(his->live, definition_.limit + 1);
          EXPECT_TRUE(sale_->cancel(*orders_, buyer, his->latest.request, "too many").now);
        }
        told.merge(fresh);
        const auto status = sale_->status().get();
        const auto stock = orders_->stock("s");
        EXPECT_EQ(status.dead, 0);
        EXPECT_EQ(status.stock, stock->initial + stock->changed);
        EXPECT_LE(status.sold, status.stock);
        expect_told();
        for (const auto& check : audit(*store_, *sale_, *orders_).checks)
          EXPECT_TRUE(check.ok) << check.name << ": " << check.figure << ", expected "
                                << check.expected << " (" << check.detail << ")";
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
      if (HasFailure()) {
        ADD_FAILURE() << "loss of kind " << loss << ", parts " << parts;
        return;
      }
    }
    EXPECT_TRUE(sale_->archive(*orders_));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
