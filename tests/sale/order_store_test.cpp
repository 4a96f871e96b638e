#include <gtest/gtest.h>
#include <sqlite3/soci-sqlite3.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "sale/order_store_suite.hpp"
#include "sale/sql/soci.hpp"
#include "sluice/log.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

class OrderStoreTest : public testing::Test {
 protected:
  OrderStoreTest() { orders_->add_sale("s", 10); }

  InsertResult insert(std::vector<SaleOrder> orders) { return orders_->insert("s", orders); }

  test::TempDir folder_;
  std::string url_ = "sqlite:" + (folder_ / "orders.db").string();
  std::unique_ptr<OrderStore> orders_ = open_order_store(url_);
};

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

// As servers do, where a transaction of another program takes long.
TEST_F(OrderStoreTest, SQ03_ALockThatIsHeldForSecondsIsWaitedFor) {
  soci::session other{soci::sqlite3, "db=" + (folder_ / "orders.db").string()};
  other << "BEGIN IMMEDIATE";
  std::jthread holder{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{2500});  // more than SQLite itself waits
    other << "ROLLBACK";
  }};
  EXPECT_EQ(insert(orders_from(1, 2)).inserted, 2U);
}

// The file is locked for seconds, and the tables are of an older version.
TEST_F(OrderStoreTest, SQ02_AProcessWaitsForAChangeOfTheTablesAndSaysSo) {
  orders_.reset();
  soci::session other{soci::sqlite3, "db=" + (folder_ / "orders.db").string()};
  other << "DELETE FROM sale_schema WHERE version > 3";
  other << "BEGIN IMMEDIATE";
  std::string lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines += line; });
  std::jthread changer{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{3500});  // more than a call waits
    other << "INSERT INTO sale_schema (version) VALUES (4)";
    other << "COMMIT";
  }};
  EXPECT_EQ(open_order_store(url_, {.answer = std::chrono::seconds{1}})->stock("s")->left, 10);
  set_log_sink({});
  EXPECT_NE(lines.find("orders.db: another process is changing its tables"), std::string::npos);
}

TEST_F(OrderStoreTest, SQ02_AKilledChangeOfTheTablesGoesOnAtTheNextOpening) {
  orders_->add_sale("many", 20'000);
  orders_->insert("many", orders_from(1, 20'000));
  orders_.reset();
  const auto file = (folder_ / "orders.db").string();
  for (const int after_ms : {2, 10, 30, 60}) {
    for (const auto* const statement :
         {"DELETE FROM sale_schema", "DROP INDEX IF EXISTS sale_orders_requests",
          "DROP INDEX IF EXISTS sale_orders_deadlines"})
      soci::session{soci::sqlite3, "db=" + file} << statement;
    test::Process changer{[&] {
      open_order_store(url_);
      return 0;
    }};
    changer.wait_for(std::chrono::milliseconds{after_ms});
    changer.kill();
    EXPECT_EQ(open_order_store(url_)->stock("many")->left, 0);
    int indexes = 0;
    soci::session{soci::sqlite3, "db=" + file}
        << "SELECT COUNT(*) FROM sqlite_master WHERE name IN ('sale_orders_requests', "
           "'sale_orders_deadlines')",
        soci::into(indexes);
    EXPECT_EQ(indexes, 2) << after_ms;
  }
}

TEST_F(OrderStoreTest, SV06_ALockThatIsNotGivenBackIsWaitedForNoLongerThanACallMayTake) {
  const auto hasty = open_order_store(url_, {.answer = std::chrono::seconds{1}});
  soci::session other{soci::sqlite3, "db=" + (folder_ / "orders.db").string()};
  other << "BEGIN IMMEDIATE";
  try {
    hasty->insert("s", orders_from(1, 2), 0);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.effect(), Effect::none);
    EXPECT_NE(error.message().find("locked"), std::string::npos);
  }
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
