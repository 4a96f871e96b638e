#include "sluice/order_store.hpp"

#include <gtest/gtest.h>
#include <sqlite3/soci-sqlite3.h>
#include <sys/resource.h>

#include <csignal>

#include "sale/sql/soci.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

SaleOrder order(std::int64_t id, std::string buyer, std::int64_t n = 1, std::int64_t units = 1) {
  return {.number = "MT20260102" + std::to_string(1000 + id),
          .id = id,
          .units = units,
          .buyer = {std::move(buyer)},
          .n = n,
          .issued_at = WallTime{std::chrono::microseconds{1'700'000'000'000'000 + id}},
          .request = {"r" + std::to_string(id)}};
}

class OrderStoreTest : public testing::Test {
 protected:
  OrderStoreTest() { orders_->add_sale("s", 10); }

  InsertResult insert(std::vector<SaleOrder> orders) { return orders_->insert("s", orders); }

  test::TempDir folder_;
  std::string url_ = "sqlite:" + (folder_ / "orders.db").string();
  std::unique_ptr<OrderStore> orders_ = open_order_store(url_);
};

TEST_F(OrderStoreTest, KeepsWhatItWasGiven) {
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

TEST_F(OrderStoreTest, TakesARepeatForWhatItIs) {
  insert({order(1, "ann"), order(2, "bob")});
  const auto result = insert({order(1, "ann"), order(3, "cid"), order(2, "bob")});
  EXPECT_EQ(result.inserted, 1U);
  EXPECT_EQ(result.repeated, 2U);
  EXPECT_TRUE(result.rejected.empty());
  EXPECT_EQ(orders_->stock("s")->left, 7);
}

TEST_F(OrderStoreTest, RejectsWhatBelongsToAnother) {
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

TEST_F(OrderStoreTest, NeverSellsMoreThanItsStock) {
  const auto result = insert({order(1, "ann", 1, 6), order(2, "bob", 1, 5), order(3, "cid", 1, 4)});
  EXPECT_EQ(result.inserted, 2U);
  ASSERT_EQ(result.rejected.size(), 1U);
  EXPECT_EQ(result.rejected[0].index, 1U);
  EXPECT_EQ(result.rejected[0].reason, "the database has 4 units left, the order has 5");
  EXPECT_EQ(orders_->stock("s")->left, 0);
  EXPECT_EQ(orders_->page("s", 0, 10).size(), 2U);
}

TEST_F(OrderStoreTest, CountsBuyersAboveALimit) {
  insert({order(1, "ann", 1), order(2, "ann", 2), order(3, "bob", 1)});
  EXPECT_EQ(orders_->buyers_above("s", 1), 1);
  EXPECT_EQ(orders_->buyers_above("s", 2), 0);
}

TEST_F(OrderStoreTest, SalesDoNotMix) {
  orders_->add_sale("t", 5);
  insert({order(1, "ann")});
  EXPECT_EQ(orders_->insert("t", std::vector<SaleOrder>{order(1, "ann")}).inserted, 1U);
  EXPECT_EQ(orders_->stock("t")->left, 4);
  EXPECT_EQ(orders_->stock("s")->left, 9);
}

TEST_F(OrderStoreTest, ComparesTheStockOfASale) {
  orders_->add_sale("s", 10);
  try {
    orders_->add_sale("s", 11);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch);
  }
}

TEST_F(OrderStoreTest, ADatabaseKeepsItsIdentity) {
  const auto identity = orders_->identity();
  EXPECT_EQ(identity.size(), 32U);
  EXPECT_EQ(open_order_store(url_)->identity(), identity);
  EXPECT_NE(open_order_store("sqlite::memory:")->identity(), identity);
}

TEST_F(OrderStoreTest, AnEpochIsAboveThoseThatTheStoreKnows) {
  orders_->add_sale("s", 10);
  EXPECT_EQ(orders_->begin_epoch("s"), 1);
  EXPECT_EQ(orders_->begin_epoch("s", 5), 6);
  EXPECT_EQ(orders_->begin_epoch("s", 5), 7);
}

TEST_F(OrderStoreTest, AChangeOfTheStockThatItLostIsNoted) {
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

TEST_F(OrderStoreTest, TellsWhichOrdersItCanNeverTake) {
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

TEST_F(OrderStoreTest, AnOrderThatEndedBeforeItCameTakesNothingOffTheStock) {
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

TEST_F(OrderStoreTest, AnOrderEndsOnceAndGivesItsUnitsBack) {
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

TEST_F(OrderStoreTest, CountsNoOrderThatEndedAgainstALimit) {
  insert({order(1, "ann", 1), order(2, "ann", 2)});
  EXPECT_EQ(orders_->buyers_above("s", 1), 1);
  orders_->end_order("s", 1, OrderState::cancelled, "");
  EXPECT_EQ(orders_->buyers_above("s", 1), 0);
}

TEST_F(OrderStoreTest, ChangesOfTheStockComeOneAfterAnother) {
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

// Tables as they were before orders had a state.
TEST_F(OrderStoreTest, TakesOverADatabaseOfAnOlderVersion) {
  const auto file = (folder_ / "old.db").string();
  {
    soci::session old{soci::sqlite3, "db=" + file};
    old << "CREATE TABLE sale_stock (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
           " initial BIGINT NOT NULL, remaining BIGINT NOT NULL CHECK (remaining >= 0))";
    old << "CREATE TABLE sale_orders (sale BIGINT NOT NULL REFERENCES sale_stock (id),"
           " id BIGINT NOT NULL, number TEXT NOT NULL, buyer TEXT NOT NULL, n BIGINT NOT NULL,"
           " units BIGINT NOT NULL CHECK (units > 0), issued_us BIGINT NOT NULL,"
           " request TEXT NOT NULL, PRIMARY KEY (sale, id), UNIQUE (sale, number),"
           " UNIQUE (sale, buyer, n)) WITHOUT ROWID";
    old << "INSERT INTO sale_stock VALUES (1, 's', 10, 8)";
    old << "INSERT INTO sale_orders VALUES (1, 5, 'MT5', 'ann', 1, 2, 7, 'r')";
  }
  for (int time = 0; time < 2; ++time) {
    const auto orders = open_order_store("sqlite:" + file);
    orders->add_sale("s", 10);
    const auto found = orders->page("s", 0, 10);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].state, OrderState::awaiting);
    EXPECT_EQ(orders->stock("s")->changed, 0);
  }
  EXPECT_TRUE(open_order_store("sqlite:" + file)->end_order("s", 5, OrderState::cancelled, "").now);
}

TEST_F(OrderStoreTest, LeavesADatabaseOfANewerVersionAlone) {
  orders_.reset();
  soci::session{soci::sqlite3, "db=" + (folder_ / "orders.db").string()}
      << "INSERT INTO sale_schema (version) VALUES (1000)";
  try {
    open_order_store(url_);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch);
    EXPECT_NE(error.message().find("version 1000, made by a newer Sluice"), std::string::npos);
  }
}

TEST_F(OrderStoreTest, ARequestHasOneOrder) {
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

// In a file that was written before the database refused it.
TEST_F(OrderStoreTest, NamesTwoOrdersOfARequestInAnOldFile) {
  auto again = order(2, "ann", 2);
  insert({order(1, "ann"), again, order(3, "bob"), order(4, "bob", 2)});
  orders_.reset();
  const auto file = (folder_ / "orders.db").string();
  const auto change = [&](const std::string& statement) {
    soci::session{soci::sqlite3, "db=" + file} << statement;
  };
  change("DROP TABLE sale_schema");
  change("DROP INDEX sale_orders_requests");
  change("UPDATE sale_orders SET request = 'r'");
  for (const auto* const left : {"2 request(s)", "1 request(s)"}) {
    try {
      open_order_store(url_);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::corrupt);
      const auto& message = error.message();
      EXPECT_NE(message.find(left), std::string::npos) << message;
      EXPECT_NE(message.find("sale 's' request 'r' of buyer "), std::string::npos) << message;
      change(message.substr(message.find("UPDATE")));
    }
  }
  EXPECT_EQ(open_order_store(url_)->page("s", 0, 10).size(), 4U);
}

TEST_F(OrderStoreTest, LivesInMemoryToo) {
  const auto orders = open_order_store("sqlite::memory:");
  orders->add_sale("s", 2);
  EXPECT_EQ(orders->insert("s", std::vector<SaleOrder>{order(1, "ann")}).inserted, 1U);
  const auto result = orders->insert(
      "s", std::vector<SaleOrder>{order(1, "ann"), order(2, "bob", 1, 5), order(3, "cid")});
  EXPECT_EQ(result.inserted, 1U);
  EXPECT_EQ(result.repeated, 1U);
  EXPECT_EQ(result.rejected.size(), 1U);
  EXPECT_EQ(orders->page("s", 0, 10).size(), 2U);
}

TEST_F(OrderStoreTest, RefusesAnUnknownScheme) {
  for (const auto* const url : {"mysql://x", "", "sqlite:", "orders.db", "sqlite:/a\"b"}) {
    try {
      open_order_store(url);
      ADD_FAILURE() << url;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument) << url;
    }
  }
}

// SQLite calls both a "disk I/O error": a write that the system refuses for the size of the file,
// and a file beside the database for which there is no room.
TEST_F(OrderStoreTest, SaysThatThereIsNoRoom) {
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit large{};
  ::getrlimit(RLIMIT_FSIZE, &large);
  const auto limit = [&](rlim_t size) {
    const rlimit small{size, large.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  };
  const auto expect_no_room = [&](auto&& deed) {
    limit(16'384);
    try {
      deed();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::out_of_space) << error.what();
      EXPECT_NE(error.message().find(url_), std::string::npos) << error.what();
      EXPECT_NE(error.message().find("File too large"), std::string::npos) << error.what();
    }
    limit(large.rlim_cur);
  };
  std::vector<SaleOrder> many;
  for (int i = 0; i < 1000; ++i) many.push_back(order(i, "b" + std::to_string(i)));
  orders_->add_sale("t", 1000);
  expect_no_room([&] { orders_->insert("t", many); });
  EXPECT_EQ(orders_->insert("t", many).inserted, 1000U) << "when there is room again";
  orders_.reset();
  expect_no_room([&] { open_order_store(url_)->insert("t", std::span{many}.first(1)); });
  ::signal(SIGXFSZ, before);
}

TEST_F(OrderStoreTest, SaysWhatIsWrongWithAPath) {
  try {
    open_order_store("sqlite:" + (folder_ / "no/such/folder/o.db").string());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::database);
    EXPECT_NE(error.message().find("no/such/folder"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice
