// What becomes of orders when the database server, or the way to it, fails. Servers of their own
// where they are killed, so that they disturb no other test.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "sale/database_servers.hpp"
#include "sale/shop.hpp"
#include "sale/sql/migrations.hpp"
#include "sluice/log.hpp"
#include "sluice/open.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "support/comes_true.hpp"
#include "support/cutting_proxy.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Cut = test::CuttingProxy::Cut;

struct Dialect {
  std::string name;
  test::DatabaseServer& (*shared)();
  std::unique_ptr<test::DatabaseServer> (*start)();
  /// Lets the next row of sale_orders fail with this code, once, whatever is rolled back.
  void (*fail_once)(test::DatabaseServer& server, const std::string& database,
                    const std::string& code);
  std::vector<std::string> undone;     ///< codes of failures that undo a transaction
  std::string full;                    ///< the code of a full disk
  std::string hold;                    ///< has read a table, and stays for a while
  std::string held;                    ///< how that begins, when it does
  std::vector<std::string> version_1;  ///< makes tables of it
  std::string sessions_of;             ///< that run a statement which begins so
  std::string kill;
  /// Sessions that begin now take no writes, whatever the others do; now they do; as it was.
  std::vector<std::string> old_primary, new_primary, one_primary;
  std::string count_sessions;  ///< of the user `shop`

  friend void PrintTo(const Dialect& dialect, std::ostream* to) { *to << dialect.name; }
};

void fail_once_in_postgresql(test::DatabaseServer& server, const std::string& database,
                             const std::string& code) {
  server.sql(database, "DROP TRIGGER IF EXISTS fails ON sale_orders");
  server.sql(database,
             "DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries;"
             "CREATE OR REPLACE FUNCTION fail() RETURNS trigger AS $$ BEGIN "
             "IF nextval('tries') = 1 THEN RAISE EXCEPTION 'as asked' USING ERRCODE = '" +
                 code +
                 "'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql;"
                 "CREATE TRIGGER fails BEFORE INSERT ON sale_orders FOR EACH ROW EXECUTE FUNCTION "
                 "fail()");
}

// The table is of an engine that rolls nothing back.
void fail_once_in_mariadb(test::DatabaseServer& server, const std::string& database,
                          const std::string& code) {
  server.sql(database,
             "DROP TRIGGER IF EXISTS fails; DROP TABLE IF EXISTS tries;"
             "CREATE TABLE tries (n INT) ENGINE = MyISAM");
  server.sql(database,
             "DELIMITER //\n"
             "CREATE TRIGGER fails BEFORE INSERT ON sale_orders FOR EACH ROW BEGIN "
             "INSERT INTO tries VALUES (1); IF (SELECT COUNT(*) FROM tries) = 1 THEN "
             "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = " +
                 code + ", MESSAGE_TEXT = 'as asked'; END IF; END //");
}

class FailingServer : public testing::TestWithParam<Dialect> {};

TEST_P(FailingServer, V23_BothOutcomesOfACommitWithoutAnAnswer) {
  auto& server = GetParam().shared();
  test::CuttingProxy proxy{server.port()};
  const auto orders = open_order_store(server.url(server.make_database(), proxy.port()));
  orders->add_sale("s", 1000);
  std::int64_t first = 1;
  for (const auto cut : {Cut::before, Cut::after, Cut::after, Cut::before}) {
    const auto batch = orders_from(first, 50);
    proxy.cut_at("COMMIT", cut);
    try {
      orders->insert("s", batch);
      ADD_FAILURE() << "nobody answered";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::database) << error.what();
      EXPECT_EQ(error.effect(), Effect::unknown) << error.what();
    }
    const auto again = orders->insert("s", batch);
    EXPECT_EQ(again.inserted, cut == Cut::before ? 50U : 0U);
    EXPECT_EQ(again.repeated, cut == Cut::before ? 0U : 50U);
    EXPECT_TRUE(again.rejected.empty());
    first += 50;
  }
  EXPECT_EQ(proxy.cuts(), 4);
  EXPECT_EQ(orders->stock("s")->left, 800);
  EXPECT_EQ(orders->page("s", 0, 1000), orders_from(1, 200));
}

// A session that broke before the COMMIT has had no effect: the call goes on in another one.
TEST_P(FailingServer, ACutBeforeTheCommitIsNotNoticed) {
  auto& server = GetParam().shared();
  test::CuttingProxy proxy{server.port()};
  const auto orders = open_order_store(server.url(server.make_database(), proxy.port()));
  orders->add_sale("s", 1000);
  for (const auto* const word : {"UPDATE sale_stock", "INSERT INTO sale_orders"})
    for (const auto cut : {Cut::before, Cut::after}) {
      const auto batch = orders_from(1 + proxy.cuts() * 50, 50);
      proxy.cut_at(word, cut);
      EXPECT_EQ(orders->insert("s", batch).inserted, 50U) << word;
    }
  proxy.cut_at("SELECT", Cut::after);
  EXPECT_EQ(orders->stock("s")->left, 800);
  EXPECT_EQ(proxy.cuts(), 5);
}

TEST_P(FailingServer, V27_WhatTheDatabaseUndidIsDoneOnceMoreAsAWhole) {
  auto& server = GetParam().shared();
  const auto database = server.make_database();
  const auto orders = open_order_store(server.url(database));
  orders->add_sale("s", 1000);
  std::int64_t first = 1;
  for (const auto& code : GetParam().undone) {
    GetParam().fail_once(server, database, code);
    EXPECT_EQ(orders->insert("s", orders_from(first, 10)).inserted, 10U) << code;
    first += 10;
    EXPECT_EQ(orders->stock("s")->left, 1001 - first) << code;
  }
}

TEST_P(FailingServer, V28_AFullDatabaseIsCalledFull) {
  auto& server = GetParam().shared();
  const auto database = server.make_database();
  const auto orders = open_order_store(server.url(database));
  orders->add_sale("s", 1000);
  GetParam().fail_once(server, database, GetParam().full);
  try {
    orders->insert("s", orders_from(1, 10));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::out_of_space) << error.what();
    EXPECT_EQ(error.effect(), Effect::none);
  }
  EXPECT_EQ(orders->stock("s")->left, 1000);
  EXPECT_EQ(orders->insert("s", orders_from(1, 10)).inserted, 10U) << "when there is room again";
}

TEST_P(FailingServer, V28_AReadOnlyDatabaseIsCalledReadOnly) {
  auto& server = GetParam().shared();
  const auto database = server.make_database();
  const bool is_postgresql = GetParam().name == "postgresql";
  const auto orders = open_order_store(server.url_with_password(database));
  orders->add_sale("s", 1000);
  const auto set_read_only = [&](bool on) {
    if (!is_postgresql) {
      server.sql(database, std::string{"SET GLOBAL read_only = "} + (on ? "1" : "0"));
      return;
    }
    server.sql("postgres", std::string{"ALTER DATABASE "} + database +
                               " SET default_transaction_read_only = " + (on ? "on" : "off"));
    // The session that stands goes on with what it had; the next one has the new setting.
    server.sql("postgres",
               "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" +
                   database + "'");
  };
  set_read_only(true);
  try {
    orders->insert("s", orders_from(1, 10));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::read_only) << error.what();
    EXPECT_EQ(error.effect(), Effect::none);
  }
  EXPECT_EQ(orders->stock("s")->left, 1000) << "it can be read";
  set_read_only(false);
  EXPECT_EQ(orders->insert("s", orders_from(1, 10)).inserted, 10U);
}

/// Tables of version 1, with more in them; another transaction reads one of them, and stays.
class ChangeOfTables {
 public:
  ChangeOfTables(const Dialect& dialect, test::DatabaseServer& server)
      : dialect_(dialect), server_(server) {
    open_order_store(url);
    for (const auto& statement : dialect.version_1) server.sql(database, statement);
    reader_ = std::jthread{[this] {
      EXPECT_THROW(server_.sql(database, dialect_.hold), std::runtime_error) << "it is killed";
    }};
    EXPECT_TRUE(test::comes_true([&] { return !sessions(dialect_.held).empty(); }));
  }
  ~ChangeOfTables() { release(); }
  std::string sessions(const std::string& statement) const {
    return server_.sql(database, fmt::format(fmt::runtime(dialect_.sessions_of), statement));
  }
  void kill(const std::string& statement) const {
    if (const auto session = sessions(statement); !session.empty())
      server_.sql(database, fmt::format(fmt::runtime(dialect_.kill), session));
  }
  /// The change is at the table that is held.
  void wait_for_change() const {
    EXPECT_TRUE(test::comes_true([&] { return !sessions(change).empty(); }));
  }
  void kill_change() const { kill(change); }
  void release() const { kill(dialect_.held); }
  void expect_whole() const {
    const auto orders = open_order_store(url);
    orders->add_sale("s", 10);
    EXPECT_EQ(orders->stock("s")->left, 10);
    EXPECT_EQ(orders->insert("s", orders_from(1, 2)).inserted, 2U);
    EXPECT_EQ(server_.sql(database, "SELECT COUNT(*) FROM sale_schema"),
              fmt::format("{}\n", sale::migrations().size()));
  }

 private:
  static constexpr const char* change = "ALTER TABLE sale_stock";
  const Dialect& dialect_;
  test::DatabaseServer& server_;

 public:
  const std::string database = server_.make_database();
  const std::string url = server_.url(database);

 private:
  std::jthread reader_;
};

class Lines {
 public:
  Lines() {
    set_log_sink([this](LogLevel, std::string_view line) {
      const std::lock_guard lock{mutex_};
      lines_ += line;
    });
  }
  ~Lines() { set_log_sink({}); }
  bool has(std::string_view text) const {
    const std::lock_guard lock{mutex_};
    return lines_.find(text) != std::string::npos;
  }

 private:
  mutable std::mutex mutex_;
  std::string lines_;
};

// A change of the tables takes as long as it takes, whatever a call may take.
TEST_P(FailingServer, SQ02_AChangeOfTheTablesHasNoLimitAndOthersWaitAndSaySo) {
  const ChangeOfTables tables{GetParam(), GetParam().shared()};
  const Lines lines;
  std::jthread first{[&] { open_order_store(tables.url, {.answer = 1s}); }};
  tables.wait_for_change();
  std::jthread second{[&] { open_order_store(tables.url, {.answer = 1s}); }};
  const auto said = tables.database + ": another process is changing its tables";
  EXPECT_TRUE(test::comes_true([&] { return lines.has(said); }));
  std::this_thread::sleep_for(1500ms);  // more than a call may take
  tables.release();
  first.join();
  second.join();
  tables.expect_whole();
}

TEST_P(FailingServer, SQ02_AKilledChangeOfTheTablesGoesOnAtTheNextOpening) {
  const ChangeOfTables tables{GetParam(), GetParam().shared()};
  std::jthread first{[&] { EXPECT_THROW(open_order_store(tables.url), Error); }};
  tables.wait_for_change();
  tables.kill_change();
  first.join();
  tables.release();
  tables.expect_whole();
}

// After a failover sessions may be left with a primary of before that takes no writes any more. A
// session knows from its beginning whether it may write.
TEST_P(FailingServer, SQ08_SessionsOfBeforeAFailoverFailNoCall) {
  auto& server = GetParam().shared();
  const auto database = server.make_database();
  const auto url = server.url_with_password(database);
  open_order_store(url)->add_sale("s", 1000);
  for (const auto& statement : GetParam().old_primary) server.sql(database, statement);
  const auto orders = open_order_store(url);
  const auto look = [&] { EXPECT_EQ(orders->stock("s")->left, 1000); };
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < 8; ++i)
      readers.emplace_back([&] {
        for (int time = 0; time < 50; ++time) look();
      });
  }
  for (const auto& statement : GetParam().new_primary) server.sql(database, statement);
  const auto sessions = std::stoi(server.sql(database, GetParam().count_sessions));
  EXPECT_EQ(orders->insert("s", orders_from(1, 10)).inserted, 10U);
  EXPECT_LE(std::stoi(server.sql(database, GetParam().count_sessions)), sessions > 1 ? 2 : 1)
      << "one failure drops all that stood idle";
  for (std::int64_t first = 11; first < 100; first += 10)
    EXPECT_EQ(orders->insert("s", orders_from(first, 10)).inserted, 10U);
  for (const auto& statement : GetParam().one_primary) server.sql(database, statement);
}

/// A sale whose orders go into a server that this test alone has.
class SaleOverServer : public testing::TestWithParam<Dialect> {
 protected:
  static OrderWorkerOptions quick() {
    return {.batch = 20,
            .idle_wait = 20ms,
            .claim_after = 60s,
            .first_pause = 5ms,
            .longest_pause = 50ms};
  }

  void buy(int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(sale_.buy(BuyerId{std::to_string(next_++)}, RequestId{"r"}).get().outcome,
                SaleOutcome::admitted);
  }
  bool all_are_in() { return sale_.status().get().waiting == 0; }

  std::unique_ptr<test::DatabaseServer> server_ = GetParam().start();
  std::string database_ = server_->make_database();
  // With TLS a broken session shows in other calls of the system.
  std::unique_ptr<OrderStore> orders_ =
      open_order_store(server_->url(database_) + "?tls_ca=" + server_->authority());
  std::unique_ptr<Store> store_ = open("embedded:");
  Sale sale_ = Sale::create(*store_, {.name = "s", .stock = 9'999, .number_type = "MT"}).get();
  int next_ = 0;
};

TEST_P(SaleOverServer, V22_KilledWhileOrdersComeInBuyersNoticeNothing) {
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  for (int kills = 0; kills < 3; ++kills) {
    const auto before = worker.progress().inserted;
    buy(400);
    ASSERT_TRUE(test::comes_true([&] { return worker.progress().inserted > before; }));
    server_->kill();
    buy(100);
    server_->start();
  }
  ASSERT_TRUE(test::comes_true([&] { return all_are_in(); }));
  EXPECT_EQ(orders_->stock("s")->left, 9'999 - next_);
  EXPECT_TRUE(sale_.dead_letters().get().empty());
  test::expect_clean(*store_, sale_, *orders_);
}

// As when the database takes seconds for a COMMIT: admission does not wait for it.
TEST_P(SaleOverServer, V28_BuyersAreServedWhileTheDatabaseStandsStill) {
  OrderWorker worker{*store_, sale_, *orders_, quick()};
  std::jthread thread{[&](std::stop_token stop) { worker.run(stop); }};
  buy(50);
  server_->stop();
  buy(500);
  const auto in_stream = sale_.status().get().waiting;
  server_->cont();
  EXPECT_GE(in_stream, 500) << "nobody waited for the database";
  ASSERT_TRUE(test::comes_true([&] { return all_are_in(); }));
  test::expect_clean(*store_, sale_, *orders_);
}

TEST_P(SaleOverServer, SV06_ASessionWhoseServerStandsStillIsGivenUp) {
  const auto orders = open_order_store(server_->url(database_), {.answer = 1s});
  orders->add_sale("s", 9'999);
  server_->stop();
  for (int i = 0; i < 2; ++i) try {  // in the session that was open, and in a new one
      orders->insert("s", orders_from(1, 10), 0);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::database) << error.what();
      EXPECT_EQ(error.effect(), Effect::none) << error.what();
    }
  server_->cont();
  EXPECT_EQ(orders->insert("s", orders_from(1, 10), 0).inserted, 10U);
  EXPECT_NO_THROW(orders->check_writable());
  EXPECT_NO_THROW(orders->check_writable()) << "the row is there now";
}

const std::vector<Dialect>& dialects() {
  static const std::vector<Dialect> both{
      {.name = "postgresql",
       .shared = postgresql,
       .start = start_quick_postgresql,
       .fail_once = fail_once_in_postgresql,
       .undone = {"40P01", "40001", "55P03"},
       .full = "53100",
       .hold = "BEGIN; LOCK TABLE sale_stock IN SHARE MODE; SELECT pg_sleep(60); COMMIT",
       .held = "BEGIN; LOCK TABLE",
       .version_1 = {"DELETE FROM sale_schema WHERE version > 1",
                     "DROP INDEX sale_orders_deadlines", "ALTER TABLE sale_stock DROP COLUMN moved",
                     "ALTER TABLE sale_orders DROP COLUMN returned"},
       .sessions_of = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND "
                      "query LIKE '{}%' AND state = 'active'",
       .kill = "SELECT pg_terminate_backend({})",
       .old_primary = {"ALTER ROLE shop SET default_transaction_read_only = on"},
       .new_primary = {"ALTER ROLE shop SET default_transaction_read_only = off"},
       .one_primary = {"ALTER ROLE shop RESET default_transaction_read_only"},
       .count_sessions = "SELECT COUNT(*) FROM pg_stat_activity WHERE usename = 'shop'"},
      {.name = "mariadb",
       .shared = mariadb,
       .start = start_quick_mariadb,
       .fail_once = fail_once_in_mariadb,
       .undone = {"1205", "1213"},
       .full = "1114",
       .hold = "BEGIN; SELECT COUNT(*) FROM sale_stock; SELECT SLEEP(60); COMMIT",
       .held = "SELECT SLEEP",
       .version_1 = {"DELETE FROM sale_schema WHERE version > 1",
                     "DROP INDEX sale_orders_deadlines ON sale_orders",
                     "ALTER TABLE sale_stock DROP COLUMN moved",
                     "ALTER TABLE sale_orders DROP COLUMN returned"},
       .sessions_of = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND "
                      "info LIKE '{}%'",
       .kill = "KILL {}",
       .old_primary = {"SET GLOBAL read_only = 1"},
       .new_primary = {"GRANT READ_ONLY ADMIN ON *.* TO shop@'127.0.0.1'"},
       .one_primary = {"REVOKE READ_ONLY ADMIN ON *.* FROM shop@'127.0.0.1'",
                       "SET GLOBAL read_only = 0"},
       .count_sessions = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = "
                         "'shop'"}};
  return both;
}

INSTANTIATE_TEST_SUITE_P(All, FailingServer, testing::ValuesIn(dialects()),
                         [](const auto& dialect) { return dialect.param.name; });
INSTANTIATE_TEST_SUITE_P(All, SaleOverServer, testing::ValuesIn(dialects()),
                         [](const auto& dialect) { return dialect.param.name; });

// What a COMMIT has answered is on the server's disk, whatever the role's setting says.
TEST(PostgresqlAlone, SQ09_ACommitWaitsForTheDiskWhateverTheRoleHasSet) {
  auto& server = postgresql();
  for (const auto* const setting : {"local", "off", "on", "remote_apply"}) {
    const auto database = server.make_database();
    server.sql("postgres",
               fmt::format("ALTER DATABASE {} SET synchronous_commit = {}", database, setting));
    const auto orders = open_order_store(server.url(database));
    orders->add_sale("s", 1000);
    server.sql(database,
               "CREATE TABLE seen (setting TEXT); CREATE FUNCTION look() RETURNS trigger AS $$ "
               "BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; "
               "END $$ LANGUAGE plpgsql; CREATE TRIGGER look BEFORE INSERT ON sale_orders FOR EACH "
               "ROW EXECUTE FUNCTION look()");
    orders->insert("s", orders_from(1, 1));
    EXPECT_EQ(
        server.sql(database, "SELECT setting FROM seen"),
        std::string{setting == std::string_view{"remote_apply"} ? "remote_apply" : "on"} + "\n");
  }
}

// PostgreSQL ends all sessions when one process of it crashes, since it does not trust what they
// share any more: 57P02. That says nothing about the orders that were under way.
TEST(PostgresqlAlone, V24_ACrashOfAnotherSessionMakesNoDeadLetter) {
  const auto server = start_quick_postgresql();
  const auto database = server->make_database();
  const auto orders = open_order_store(server->url(database));
  orders->add_sale("s", 1000);
  orders->insert("s", orders_from(1, 10));
  const auto crash = [&] {
    const auto pid = std::stoi(server->sql(
        "postgres", "SELECT pid FROM pg_stat_activity WHERE backend_type = 'autovacuum launcher'"));
    ::kill(pid, SIGKILL);
  };
  for (std::int64_t first = 11; first <= 41; first += 10) {
    crash();
    std::size_t there = 0;
    ASSERT_TRUE(test::comes_true([&] {
      try {
        const auto result = orders->insert("s", orders_from(first, 10));
        EXPECT_TRUE(result.rejected.empty());
        there = result.inserted + result.repeated;
        return true;
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::database) << error.what();
        return false;
      }
    }));
    EXPECT_EQ(there, 10U);
    ASSERT_TRUE(test::comes_true([&] {
      try {
        return !server
                    ->sql("postgres",
                          "SELECT pid FROM pg_stat_activity WHERE backend_type = "
                          "'autovacuum launcher'")
                    .empty();
      } catch (const std::runtime_error&) {
        return false;
      }
    }));
  }
  EXPECT_EQ(orders->stock("s")->left, 950);
}

}  // namespace
}  // namespace sluice
