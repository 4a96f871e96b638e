// What other programs do with SQLite, on servers: random histories of orders, any one field of any
// table changed, pairs of stores and databases, and a database that is rolled back. SLUICE_LONG: so
// many histories.
#include <fmt/ranges.h>

#include <cstdlib>

#include "sale/audit/unknown_columns.hpp"
#include "sale/database_servers.hpp"
#include "sale/order_histories.hpp"
#include "sluice/open.hpp"
#include "support/comes_true.hpp"

namespace sluice {
namespace {

class OnServers : public testing::TestWithParam<DatabaseKind> {
 protected:
  sale::SqlDialect dialect() const {
    return GetParam().name == "mariadb" ? sale::mariadb_dialect(url_)
                                        : sale::postgresql_dialect(url_);
  }

  const std::string url_ = GetParam().make();
};

TEST_P(OnServers, SV01_SV13_NoRightPaymentIsFlaggedInAnyHistory) {
  test::Histories histories{dialect()};
  const auto* const wanted = std::getenv("SLUICE_LONG");
  histories.expect_sound(wanted ? std::atoi(wanted) : 50);
}

/// A sale that is paid for, whose tables have rows of all kinds.
class PaidSale {
 public:
  explicit PaidSale(const std::string& url) : orders_(open_order_store(url)) {
    for (const auto* const buyer : {"awaiting", "paid", "part", "refunded", "unpaid", "late"})
      sale_.buy({buyer}, {"r"}, 2).get();
    OrderWorker{*store_, sale_, *orders_}.drain();
    for (const auto* const buyer : {"paid", "part", "refunded"}) pay(buyer, 1000);
    pay("awaiting", 1);
    sale_.cancel_units(*orders_, {"part"}, {"r"}, 1, "k", "why");
    for (const auto* const buyer : {"refunded", "unpaid"})
      sale_.cancel(*orders_, {buyer}, {"r"}, "why");
    pay("unpaid", 1000);
    for (const auto& refund : orders_->payments().refunds("s", 1))
      orders_->payments().refund_done(refund);
    sale_.change_stock(*orders_, 60);
  }
  SaleAudit look() const { return audit(*store_, sale_, *orders_); }
  bool is_sound() const try { return look().ok(); } catch (const std::exception&) {
    return false;
  }

 private:
  void pay(const std::string& buyer, std::int64_t amount) {
    const auto order = orders_->find_request("s", {buyer}, {"r"});
    sale_.pay(*orders_, {.provider = "acme",
                         .event = buyer,
                         .sale = "s",
                         .order = order->number,
                         .amount = amount,
                         .currency = "CNY"});
  }

  std::unique_ptr<Store> store_ = open("embedded:");
  std::unique_ptr<OrderStore> orders_;
  Sale sale_ = Sale::create(*store_, {.name = "s",
                                      .stock = 50,
                                      .limit = 1,
                                      .unit_limit = 9,
                                      .number_type = "MT",
                                      .payment = PaymentTerms{.price = 500, .currency = "CNY"}})
                   .get();
};

/// Every table with what orders its rows.
constexpr std::pair<std::string_view, std::string_view> all_tables[] = {
    {"sale_stock", "id"},
    {"sale_orders", "sale, id"},
    {"sale_returns", "sale, order_id, seq"},
    {"sale_changes", "sale, seq"},
    {"sale_definitions", "sale, field"},
    {"sale_payments", "provider, event"},
    {"sale_refunds", "sale, order_id, seq"},
    {"sale_messages", "sale, order_id, seq"}};

TEST_P(OnServers, CO05_EachColumnOfASaleThatIsPaidForIsComparedOrDeclaredUnknown) {
  const PaidSale sale{url_};
  for (const auto& check : sale.look().checks)
    ASSERT_TRUE(check.ok) << check.name << ": " << check.detail;
  const bool is_mariadb = GetParam().name == "mariadb";
  soci::session sql;
  dialect().connect(sql, false);
  sql << (is_mariadb ? "SET foreign_key_checks = 0" : "SET session_replication_role = replica");
  int changes = 0;
  std::vector<std::string> unnoticed;
  for (const auto& [table, key] : all_tables) {
    sql << fmt::format("CREATE TABLE kept AS SELECT * FROM {}", table);
    const soci::rowset<std::string> columns =
        (sql.prepare << fmt::format("SELECT CAST(CONCAT(column_name, ' ', data_type) AS CHAR(99)) "
                                    "FROM information_schema.columns WHERE table_name = 'kept' AND "
                                    "table_schema = {}",
                                    is_mariadb ? "DATABASE()" : "current_schema()"));
    for (const auto& column : std::vector<std::string>{columns.begin(), columns.end()}) {
      const auto name = column.substr(0, column.find(' '));
      std::string which = "1 = 1";
      for (const auto& unknown : sale::unknown_columns)
        if (unknown.table == table && unknown.name == name)
          which = unknown.rows.empty() ? "1 = 0" : fmt::format("NOT ({})", unknown.rows);
      const auto change =
          fmt::format("UPDATE {0} SET {1} = {2}", table, name,
                      column.contains("bigint") ? name + " + 1" : "CONCAT(" + name + ", 'x')");
      const auto first = fmt::format("{} ORDER BY {} LIMIT 1", which, key);
      try {
        soci::statement update =
            (sql.prepare << (is_mariadb ? fmt::format("{} WHERE {}", change, first)
                                        : fmt::format("{} WHERE ctid = (SELECT ctid FROM {} WHERE "
                                                      "{})",
                                                      change, table, first)));
        update.execute(true);
        if (update.get_affected_rows() == 0) continue;  // it is declared unknown
        ++changes;
        if (sale.is_sound()) unnoticed.push_back(change);
      } catch (const soci::soci_error&) {  // the database refuses it
      }
      sql << fmt::format("DELETE FROM {}", table);
      sql << fmt::format("INSERT INTO {} SELECT * FROM kept", table);
    }
    sql << "DROP TABLE kept";
  }
  EXPECT_GT(changes, 45);
  EXPECT_TRUE(unnoticed.empty()) << fmt::format("{}", fmt::join(unnoticed, "\n"));
  EXPECT_TRUE(sale.is_sound()) << "what was undone is as it was";
}

/// A process that sells in this store and records in this database, if the two let it.
int told_by(Store& store, const std::string& url, const std::string& name, int process) {
  const auto orders = open_order_store(url);
  auto sale = Sale::load(store, name).get();
  if (!sale)
    sale.emplace(
        Sale::create(store, {.name = name, .stock = 6, .limit = 1, .number_type = "MT"}, *orders));
  OrderWorker worker{store, *sale, *orders};
  worker.drain();
  int told = 0;
  for (int i = 0; i < 4; ++i)
    told += sale->buy({fmt::format("p{}b{}", process, i)}, {"r"}).get().outcome ==
            SaleOutcome::admitted;
  worker.drain();
  return told;
}

TEST_P(OnServers, SV02_NU02_OfOneStoreOrOneDatabaseEachUnitIsToldOnce) {
  const std::string urls[] = {url_, GetParam().make()};
  for (int which = 0; which < 16; ++which) {
    const int store = which & 1, database = which >> 1 & 1;  // of the second process
    const int store_of_first = which >> 2 & 1, database_of_first = which >> 3;
    const std::unique_ptr<Store> stores[] = {open("embedded:"), open("embedded:")};
    const auto name = fmt::format("tea{}", which);
    SCOPED_TRACE(name);
    EXPECT_EQ(told_by(*stores[store_of_first], urls[database_of_first], name, 1), 4);
    const bool is_same = store == store_of_first && database == database_of_first;
    const bool is_apart = store != store_of_first && database != database_of_first;
    try {
      const auto told = told_by(*stores[store], urls[database], name, 2);
      EXPECT_TRUE(is_same || is_apart);
      EXPECT_EQ(told, is_same ? 2 : 4);
    } catch (const Error& error) {
      EXPECT_FALSE(is_same || is_apart) << error.what();
      EXPECT_EQ(error.errc(), Errc::config_mismatch) << error.what();
    }
    EXPECT_EQ(open_order_store(urls[database_of_first])->page(name, 0, 100).size(),
              is_same ? 6U : 4U);
  }
}

// A program of before beside a newer one, which has changed the tables.
TEST_P(OnServers, SQ07_TheWorkerOfBeforeEndsAndItsOrdersWaitForTheNewerOne) {
  const auto store = open("embedded:");
  const auto orders = open_order_store(url_);
  auto sale =
      Sale::create(*store, {.name = "tea", .stock = 50, .limit = 1, .number_type = "MT"}, *orders);
  const auto buy = [&](const std::string& buyer) {
    EXPECT_EQ(sale.buy({buyer}, {"r"}).get().outcome, SaleOutcome::admitted) << buyer;
  };
  const auto work = [&] { OrderWorker{*store, sale, *orders}.drain(); };
  buy("ann");
  work();
  buy("bob");
  GetParam().run(url_, "INSERT INTO sale_schema (version) VALUES (1000)");
  try {
    work();
    ADD_FAILURE() << "it went on by the old rules";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch) << error.what();
    EXPECT_TRUE(error.message().contains("newer Sluice")) << error.what();
  }
  buy("cid");
  EXPECT_EQ(sale.status().get().waiting, 2);
  EXPECT_EQ(orders->page("tea", 0, 10).size(), 1U);
  GetParam().run(url_, "DELETE FROM sale_schema WHERE version = 1000");  // as the newer one sees it
  work();
  EXPECT_EQ(orders->page("tea", 0, 10).size(), 3U);
}

TEST_P(OnServers, SV18_ADatabaseThatWasRolledBackIsNoticedAtTheNextCommit) {
  const auto store = open("embedded:");
  const auto orders = open_order_store(url_);
  auto sale = Sale::create(*store, {.name = "tea", .stock = 9'999, .limit = 1, .number_type = "MT"},
                           *orders);
  OrderWorker worker{*store, sale, *orders};
  std::jthread working{[&](std::stop_token stop) { worker.run(stop); }};
  const auto buy = [&](int buyer) {
    return sale.buy({fmt::to_string(buyer)}, {"r"}).get().outcome;
  };
  const auto all_in = [&] { return sale.status().get().waiting == 0; };
  constexpr const char* tables[] = {"sale_orders", "sale_stock"};
  soci::session sql;
  dialect().connect(sql, false);
  sql << (GetParam().name == "mariadb" ? "SET foreign_key_checks = 0"
                                       : "SET session_replication_role = replica");
  for (int i = 0; i < 10; ++i) {
    if (i == 5)
      for (const auto* const table : tables)
        sql << fmt::format("CREATE TABLE backup_of_{0} AS SELECT * FROM {0}", table);
    EXPECT_EQ(buy(i), SaleOutcome::admitted);
    ASSERT_TRUE(test::comes_true(all_in));
  }
  sql << "BEGIN";
  for (const auto* const table : tables) sql << fmt::format("DELETE FROM {}", table);
  for (const auto* const table : tables)
    sql << fmt::format("INSERT INTO {0} SELECT * FROM backup_of_{0}", table);
  sql << "COMMIT";
  int next = 10;
  EXPECT_EQ(buy(next), SaleOutcome::admitted) << "nobody has committed yet";
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(test::comes_true([&] { return buy(++next) == SaleOutcome::recovering; }));
  const auto took = std::chrono::steady_clock::now() - begin;
  std::cout << "noticed within " << took / 1ms << " ms\n";
  EXPECT_EQ(orders->page("tea", 0, 100).size(), 5U) << "nothing was brought in";
}

INSTANTIATE_TEST_SUITE_P(All, OnServers, testing::ValuesIn(database_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace sluice
