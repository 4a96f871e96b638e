// A store that lost what it had, healed from the database; killed at every step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/embedded_store.hpp"
#include "sale/watched_orders.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/faulty_store.hpp"
#include "support/forwarding_store.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// A sale with orders of each kind, and the means to lose them.
class SaleRecoveryTest : public testing::Test {
 protected:
  using Told = std::map<std::pair<std::string, std::string>, SaleOrder>;

  SaleOrder buy(const std::string& buyer, const std::string& request, std::int64_t units = 1) {
    auto answer = sale_->buy({buyer}, {request}, units).get();
    EXPECT_TRUE(answer.has_order()) << to_string(answer.outcome);
    if (!answer.order) return {};
    told_.insert_or_assign({buyer, request}, *answer.order);
    return *answer.order;
  }
  void work() { OrderWorker{*store_, *sale_, *orders_}.drain(); }

  /// What the store has of the sale: the words of commands that bring it there.
  using Backup = std::vector<std::vector<std::string>>;
  Backup back_up() {
    Backup all;
    for (const auto* const key : hashes) {
      std::vector<std::string> words{"HSET", key};
      const auto fields = store_->run({"HGETALL", key}).get();
      for (const auto& word : fields.as_items()) words.push_back(word.as_text());
      if (words.size() > 2) all.push_back(std::move(words));
    }
    const auto entries = store_->run({"XRANGE", stream, "-", "+"}).get();
    for (const auto& entry : entries.as_items()) {
      std::vector<std::string> words{"XADD", stream, entry.as_items().at(0).as_text()};
      for (const auto& word : entry.as_items().at(1).as_items()) words.push_back(word.as_text());
      all.push_back(std::move(words));
    }
    all.push_back({"XGROUP", "CREATE", stream, "workers", "0", "MKSTREAM"});
    return all;
  }
  void roll_back(const Backup& to) {
    for (const auto* const key : hashes) store_->run({"DEL", key}).get();
    store_->run({"DEL", stream}).get();
    for (const auto& command : to) {
      const std::vector<std::string_view> words{command.begin(), command.end()};
      store_->run(Words{words}).get();
    }
  }

  /// Everything that was told stands, each request gets its order, and the audit finds nothing.
  void expect_healed(const std::string& trace = {}) {
    work();
    sale_.emplace(std::move(*Sale::load(*store_, "s").get()));
    for (const auto& [wish, order] : told_) {
      const auto answer = sale_->buy({wish.first}, {wish.second}, order.units).get();
      EXPECT_EQ(answer.outcome, SaleOutcome::repeated)
          << wish.first << ": " << to_string(answer.outcome);
      EXPECT_EQ(answer.order, order);
    }
    const auto found = audit(*store_, *sale_, *orders_);
    for (const auto& check : found.checks)
      EXPECT_TRUE(check.ok || check.name == trace)
          << check.name << ": " << check.figure << ", expected " << check.expected << " ("
          << check.detail << ")";
    EXPECT_EQ(found.in_database, static_cast<std::int64_t>(told_.size() + cancelled_));
    EXPECT_EQ(sale_->status().get().dead, 0);
  }

  static constexpr const char* hashes[] = {"{s}:sale", "{s}:buyers", "{s}:requests",
                                           "{s}:returned"};
  static constexpr const char* stream = "{s}:orders";
  VirtualClock clock_{WallTime{std::chrono::seconds{1'767'369'597}}};
  std::unique_ptr<Store> store_ = engine::open_embedded({});
  std::optional<Sale> sale_ =
      Sale::create(*store_, {.name = "s", .stock = 40, .limit = 3, .number_type = "MT"}).get();
  std::unique_ptr<OrderStore> orders_ = open_order_store("sqlite::memory:");
  Told told_;
  std::size_t cancelled_ = 0;
};

TEST_F(SaleRecoveryTest, DoesNothingToASaleThatIsSound) {
  for (const auto* const buyer : {"a", "b", "c"}) buy(buyer, "r", 2);
  work();
  buy("d", "r");
  const auto done = recover(*store_, "s", *orders_);
  EXPECT_FALSE(done.made_again);
  EXPECT_EQ(done.in_database, 3);
  EXPECT_EQ(done.restored, 0);
  EXPECT_EQ(done.on_the_way, 1);
  EXPECT_EQ(done.sent_again, 0);
  buy("e", "r");
  expect_healed();
}

// Redis restored without three orders that the database had: the same request was admitted with
// another id, and innocent buyers became dead letters.
TEST_F(SaleRecoveryTest, E15_WhatTheStoreForgotIsHealedFromTheDatabase) {
  buy("a", "r");
  buy("b", "r");
  work();
  const auto backup = back_up();
  for (const auto* const buyer : {"c", "d", "e"}) buy(buyer, "r", 2);
  buy("a", "again");
  work();
  roll_back(backup);

  const auto done = recover(*store_, "s", *orders_);
  EXPECT_EQ(done.in_database, 6);
  EXPECT_EQ(done.restored, 4);
  buy("f", "r");
  buy("c", "again");
  EXPECT_EQ(told_.at({"f", "r"}).number.substr(10), "0007") << "numbers are raised, too";
  expect_healed();
}

// As it is where no gate stood before: some were admitted anew.
TEST_F(SaleRecoveryTest, E15_ABuyerWhoWasAdmittedAnewGetsHisFirstOrderBack) {
  buy("a", "r");
  work();
  const auto backup = back_up();
  const auto first = buy("b", "r", 2);
  work();
  roll_back(backup);
  const auto anew = sale_->buy({"b"}, {"r"}, 2).get();
  EXPECT_EQ(anew.outcome, SaleOutcome::admitted);
  EXPECT_NE(anew.order, first);

  const auto done = recover(*store_, "s", *orders_);
  EXPECT_EQ(done.restored, 1);
  EXPECT_EQ(done.removed, 1) << "the entry of the new one";
  expect_healed();
}

TEST_F(SaleRecoveryTest, AStoreThatIsEmptyGetsTheSaleBackFromTheDatabaseAlone) {
  for (const auto* const buyer : {"a", "b", "c"}) buy(buyer, "r", 3);
  work();
  store_->run({"FLUSHALL"}).get();
  EXPECT_THROW(recover(*store_, "s", *orders_), Error) << "it may be another store";
  const auto done = recover(*store_, "s", *orders_, {.new_store = true});
  EXPECT_TRUE(done.made_again);
  EXPECT_EQ(done.restored, 3);
  sale_.emplace(std::move(*Sale::load(*store_, "s").get()));
  EXPECT_EQ(sale_->definition().limit, 3);
  EXPECT_EQ(sale_->status().get().left(), 31);
  buy("d", "r");
  expect_healed();
  auto other = Sale::create(*store_, {.name = "t", .stock = 1, .number_type = "X"}).get();
  const auto theirs = other.buy({"a"}, {"r"}).get().order->id >> 20 & 0xfff;
  EXPECT_NE(theirs, told_.begin()->second.id >> 20 & 0xfff) << "another lane than the lost sale's";
}

// A program that creates its sale when it starts sells the stock once more; the first worker stops
// it.
TEST_F(SaleRecoveryTest, ASaleThatWasLostAndCreatedAgainIsShutByItsWorker) {
  buy("a", "r", 3);
  work();
  store_->run({"FLUSHALL"}).get();
  sale_.emplace(
      Sale::create(*store_, {.name = "s", .stock = 40, .limit = 3, .number_type = "MT"}).get());
  EXPECT_THROW(work(), Error);
  EXPECT_EQ(sale_->buy({"b"}, {"r"}).get().outcome, SaleOutcome::recovering);
  EXPECT_EQ(sale_->status().get().state, SaleState::recovering);
  recover(*store_, "s", *orders_, {.new_store = true});
  buy("b", "r");
  expect_healed();
}

TEST_F(SaleRecoveryTest, OrdersThatAreOnNoWayAreSentAgain) {
  for (const auto* const buyer : {"a", "b", "c"}) buy(buyer, "r");
  store_->run({"DEL", "{s}:orders"}).get();
  const auto done = recover(*store_, "s", *orders_);
  EXPECT_EQ(done.sent_again, 3);
  EXPECT_EQ(recover(*store_, "s", *orders_).sent_again, 0);
  expect_healed();
}

TEST_F(SaleRecoveryTest, OrdersOfTheStreamAreEnteredWhereTheRecordsAreLost) {
  for (const auto* const buyer : {"a", "b", "c"}) buy(buyer, "r");
  work();
  buy("d", "r");
  for (const auto* const key : {"{s}:sale", "{s}:buyers", "{s}:requests"})
    store_->run({"DEL", key}).get();
  recover(*store_, "s", *orders_);
  expect_healed();
}

TEST_F(SaleRecoveryTest, ReturnsAndChangesOfTheStockComeBackToo) {
  for (const auto* const buyer : {"a", "b", "c"}) buy(buyer, "r", 2);
  work();
  const auto backup = back_up();
  sale_->cancel(*orders_, {"b"}, {"r"}, "changed his mind");
  told_.erase({"b", "r"});
  ++cancelled_;
  sale_->change_stock(*orders_, 60);
  sale_->change_stock(*orders_, 50);
  roll_back(backup);
  const auto done = recover(*store_, "s", *orders_);
  EXPECT_EQ(done.given_back, 1);
  const auto status = sale_->status().get();
  EXPECT_EQ(status.stock, 50);
  EXPECT_EQ(status.sold, 4);
  EXPECT_EQ(sale_->buy({"b"}, {"r"}, 2).get().outcome, SaleOutcome::cancelled);
  EXPECT_TRUE(sale_->change_stock(*orders_, 55)) << "the next change counts on";
  expect_healed();
}

/// A server that resizes the hash of what came back while it is read: HSCAN gives each field twice.
class Resizing final : public test::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  using ForwardingStore::run;
  Task<Value> run(Words command, CallOptions options) override {
    const bool is_scan = command[0] == "HSCAN" && command[1] == "{s}:returned";
    return is_scan ? twice(store_.run(command, options)) : store_.run(command, options);
  }

 private:
  static Task<Value> twice(Task<Value> asked) {
    Value reply = co_await asked;
    auto& fields = reply.as_items().at(1).as_items();
    const auto once = fields;
    fields.insert(fields.end(), once.begin(), once.end());
    co_return reply;
  }
};

TEST_F(SaleRecoveryTest, AReturnThatIsReadTwiceStaysOne) {
  for (const auto* const buyer : {"a", "b"}) buy(buyer, "r", 2);
  work();
  const auto order = told_.at({"b", "r"});
  sale_->cancel(*orders_, {"b"}, {"r"}, "changed his mind");
  told_.erase({"b", "r"});
  ++cancelled_;
  Resizing resizing{*store_};
  recover(resizing, "s", *orders_);
  const auto returned = fmt::format("{}:1", order.id);
  EXPECT_EQ(to_string(store_->run({"HGET", "{s}:returned", returned}).get()), "\"2\"");
  expect_healed();
}

// What a worker read before the recovery is from a store that may be gone.
TEST_F(SaleRecoveryTest, AWorkerOfAnEarlierEpochBringsNothingIn) {
  buy("a", "r");
  work();
  const auto stale = buy("b", "r");
  recover(*store_, "s", *orders_);
  EXPECT_TRUE(orders_->insert("s", {&stale, 1}, 0).stale);
  EXPECT_EQ(orders_->page("s", -1, 10).size(), 1U);
  expect_healed();
}

// It was brought in as one that ended, under a number that the store had given to another since.
TEST_F(SaleRecoveryTest, AnOrderThatIsForgottenWhileItIsCancelledGetsInNowhere) {
  buy("a", "r");
  work();
  const auto backup = back_up();
  sale_->buy({"b"}, {"r"}).get();
  test::WatchedOrders orders{*orders_};
  orders.before = [&](std::string_view call) {
    if (call != "insert_ended") return;
    roll_back(backup);
    recover(*store_, "s", *orders_);
  };
  EXPECT_THROW(sale_->cancel(orders, {"b"}, {"r"}, "why"), Error);
  buy("c", "r");
  expect_healed();
}

TEST_F(SaleRecoveryTest, SaysWhatToDoWhereNobodyKnowsTheSale) {
  try {
    recover(*store_, "unknown", *orders_);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument);
    EXPECT_NE(error.message().find("create it again"), std::string::npos);
  }
}

/// At its n-th step a recovery meets with something: nothing is lost, nothing doubled.
class RecoveryMishap : public SaleRecoveryTest {
 protected:
  struct Killed {};
  /// `mishap`: throws Killed, or not. `after`: what is done when it was killed.
  void at_every_step(const std::function<void()>& mishap, const std::function<void()>& after) {
    int steps = 0;
    for (int fatal = 0;; ++fatal) {
      const bool is_empty = fatal % 2 == 1;  // both kinds of loss, in turn
      lose(is_empty);
      int left = fatal / 2;
      const auto step = [&] {
        ++steps;
        if (left-- == 0) mishap();
      };
      test::FaultyStore store{*store_};
      store.plan = [&](std::string_view) {
        step();
        return test::Fault::none;
      };
      test::WatchedOrders orders{*orders_};
      orders.before = [&](std::string_view) { step(); };
      try {
        recover(store, "s", orders, {.new_store = true});
      } catch (const Killed&) {
        after();
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::server) << error.what();
      }
      sale_.emplace(std::move(*Sale::load(*store_, "s").get()));
      buy("e", "r");
      expect_healed();
      ASSERT_FALSE(testing::Test::HasFailure()) << "at step " << fatal / 2;
      if (left >= 0 && is_empty) break;
    }
    EXPECT_GT(steps, 100);
  }

 private:
  void lose(bool all) {
    store_ = engine::open_embedded({});
    orders_ = open_order_store("sqlite::memory:");
    told_.clear();
    cancelled_ = 1;
    sale_.emplace(
        Sale::create(*store_, {.name = "s", .stock = 40, .limit = 3, .number_type = "MT"}).get());
    buy("a", "r");
    buy("x", "r", 2);
    work();
    buy("on his way", "r");
    const auto backup = back_up();
    for (const auto* const buyer : {"c", "d"}) buy(buyer, "r", 2);
    work();
    sale_->cancel(*orders_, {"x"}, {"r"}, "changed his mind");
    told_.erase({"x", "r"});
    if (all)
      store_->run({"FLUSHALL"}).get();
    else
      roll_back(backup);
  }
};

/// It is run again, and buyers stay outside until it ends.
TEST_F(RecoveryMishap, E15_MayBeKilledAtEveryStep) {
  at_every_step(
      [] { throw Killed{}; },
      [&] {
        if (auto sale = Sale::load(*store_, "s").get();
            sale && store_->run({"HEXISTS", "{s}:sale", "recovering"}).get().as_integer() == 1) {
          EXPECT_EQ(sale->buy({"new"}, {"r"}).get().outcome, SaleOutcome::recovering);
        }
        recover(*store_, "s", *orders_, {.new_store = true});
      });
}

/// By another one, which ends before it; or it by that one, whose last steps come late.
TEST_F(RecoveryMishap, MayBeOvertakenAtEveryStep) {
  at_every_step([&] { recover(*store_, "s", *orders_, {.new_store = true}); }, [] {});
}

/// At its n-th step, and at a later one, a worker meets with something. Whatever it has read comes
/// into the database with the same drain: nobody has to wait until it counts as dead.
class WorkerMishap : public SaleRecoveryTest {
 protected:
  /// What happens at a step: another process recovers the sale, a call fails, or the worker is to
  /// stop.
  enum class Mishap { recovered, refused, request_lost, reply_lost, stopped };
  static constexpr Mishap mishaps[] = {Mishap::recovered, Mishap::refused, Mishap::request_lost,
                                       Mishap::reply_lost};
  struct Fate {
    int step;
    Mishap mishap;
  };

  /// False: the worker has fewer steps.
  bool survives(const std::vector<Fate>& fates) {
    begin_anew();
    int steps = 0;
    std::stop_source stop;
    const auto mishap_now = [&]() -> std::optional<Mishap> {
      const auto fate = std::ranges::find(fates, steps++, &Fate::step);
      if (fate == fates.end()) return std::nullopt;
      if (fate->mishap == Mishap::stopped) {
        stop.request_stop();
        return std::nullopt;
      }
      if (fate->mishap != Mishap::recovered) return fate->mishap;
      recover(*store_, "s", *orders_, {.new_store = true});
      buy(fmt::format("after {}", fate->step), "r");
      return std::nullopt;
    };
    test::FaultyStore store{*store_};
    store.plan = [&](std::string_view) { return fault_of(mishap_now()); };
    test::WatchedOrders orders{*orders_};
    orders.before = [&](std::string_view) {
      if (mishap_now()) throw Error{Errc::database, "the test locked it"};
    };
    OrderWorker{store, *sale_, orders, {.batch = 1, .first_pause = 1ms}}.drain(stop.get_token());
    const auto pending = store_->run({"XPENDING", stream, "workers"}).get().as_items().at(0);
    EXPECT_EQ(pending.as_integer(), 0) << text_of(fates);
    // What was bought after the last look waits, and is nobody's.
    const auto waiting = static_cast<std::size_t>(sale_->status().get().waiting);
    EXPECT_EQ(orders_->page("s", -1, 100).size() + waiting, told_.size()) << text_of(fates);
    return steps > std::ranges::max(fates, {}, &Fate::step).step;
  }

 private:
  void begin_anew() {
    store_ = engine::open_embedded({});
    orders_ = open_order_store("sqlite::memory:");
    told_.clear();
    sale_.emplace(
        Sale::create(*store_, {.name = "s", .stock = 40, .limit = 3, .number_type = "MT"}).get());
    for (const auto* const buyer : {"a", "b", "c"}) buy(buyer, "r");
  }
  static test::Fault fault_of(std::optional<Mishap> mishap) {
    if (mishap == Mishap::refused) return test::Fault::refused;
    if (mishap == Mishap::request_lost) return test::Fault::request_lost;
    return mishap == Mishap::reply_lost ? test::Fault::cut_off : test::Fault::none;
  }
  static std::string text_of(const std::vector<Fate>& fates) {
    std::string text;
    for (const auto& fate : fates)
      text += fmt::format("mishap {} at step {}; ", static_cast<int>(fate.mishap), fate.step);
    return text;
  }
};

TEST_F(WorkerMishap, ChaosSale_WhatAWorkerHasReadComesInWithItWhateverHappens) {
  int rows = 0;
  for (const auto mishap : mishaps)
    for (int step = 0; survives({{step, mishap}}); ++step) ++rows;
  EXPECT_GT(rows, 80);
}

TEST_F(WorkerMishap, ChaosSale_AWorkerThatIsStoppedFinishesWhatItHasReadThoughTheSaleIsRecovered) {
  for (int step = 0; survives({{step, Mishap::stopped}}); ++step)
    for (int apart = -4; apart <= 4; ++apart)
      survives({{step, Mishap::stopped}, {step + apart, Mishap::recovered}});
}

/// SLUICE_LONG: any two, so many steps apart at most; else a recovery, and anything at once.
TEST_F(WorkerMishap, ChaosSale_WhatAWorkerHasReadComesInWithItWhateverHappensTwice) {
  const auto* const factor = std::getenv("SLUICE_LONG");
  const int most_apart = factor ? std::stoi(factor) : 1;
  for (const auto first : std::span{mishaps}.first(factor ? std::size(mishaps) : 1))
    for (int step = 0; survives({{step, first}}); ++step)
      for (const auto second : mishaps)
        for (int apart = 1; apart <= most_apart; ++apart)
          survives({{step, first}, {step + apart, second}});
}

// The server that told it is gone, within one second, and the clock of the next is not ahead.
TEST_F(SaleRecoveryTest, NoBuyerGetsTheIdOfAnOrderThatOnlyItsBuyerKnows) {
  store_ = engine::open_embedded({.clock = &clock_});
  sale_.emplace(
      Sale::create(*store_, {.name = "s", .stock = 40, .limit = 3, .number_type = "MT"}).get());
  buy("a", "r");
  work();
  const auto backup = back_up();
  const auto lost = *sale_->buy({"b"}, {"r"}).get().order;
  for (int recoveries = 1; recoveries <= 3; ++recoveries) {
    roll_back(backup);
    recover(*store_, "s", *orders_, {.new_store = true});
    const auto other = *sale_->buy({"c"}, {"r"}).get().order;
    EXPECT_EQ(other.number, lost.number) << "numbers have no gaps";
    EXPECT_GT(other.id, lost.id + 4096 * (recoveries - 1));
  }
  told_[{"c", "r"}] = *sale_->buy({"c"}, {"r"}).get().order;
  expect_healed();
}

TEST_F(SaleRecoveryTest, ADamagedRecordIsWrittenAgainFromWhatTheDatabaseHas) {
  buy("ann", "r1");
  buy("bob", "r1");
  buy("bob", "r2");
  work();
  buy("cid", "r1");
  for (const auto* const buyer : {"ann", "bob", "cid"})
    store_->run({"HSET", "{s}:buyers", buyer, "rubbish"}).get();
  recover(*store_, "s", *orders_, {.new_store = true});
  expect_healed();

  store_->run({"HSET", "{s}:buyers", "nobody", "rubbish"}).get();
  try {
    recover(*store_, "s", *orders_, {.new_store = true});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::corrupt);
    EXPECT_NE(error.message().find("buyers: nobody"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace sluice
