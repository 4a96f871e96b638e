// The audit finds what was tampered with, and names it. SLUICE_LONG: each change of any one field
// is tried, without it some.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sqlite3/soci-sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "engine/embedded_store.hpp"
#include "sale/audit/unknown_columns.hpp"
#include "sale/sql/soci.hpp"
#include "sale/watched_orders.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using Names = std::set<std::string>;

/// A sale in which everything occurs: several orders a buyer, cancelled ones, changes of the stock,
/// orders that are handed out, on their way and dead.
struct Shop {
  explicit Shop(std::int64_t limit = 3, std::optional<PaymentTerms> payment = {})
      : sale(Sale::create(*store, {.name = "s",
                                   .stock = 50,
                                   .limit = limit,
                                   .unit_limit = 9,
                                   .number_type = "MT",
                                   .payment = std::move(payment)})
                 .get()) {}

  void fill() {
    for (int i = 0; i < 8; ++i) buy(std::to_string(i), "r");
    buy("3", "again");
    buy("3", "and again");
    buy("4", "again");
    buy("\xff odd,%", "r%\n");
    bring_in(12);
    sale.cancel(*orders, BuyerId{"5"}, RequestId{"r"}, "changed his mind");
    sale.cancel(*orders, BuyerId{"3"}, RequestId{"again"}, "too many");
    sale.change_stock(*orders, 70);
    sale.change_stock(*orders, 5);  // refused
    sale.change_stock(*orders, 60);
    buy("dead", "r");
    sql("CREATE TRIGGER no BEFORE INSERT ON sale_orders BEGIN SELECT RAISE(ABORT, 'no'); END");
    bring_in(1);
    sql("DROP TRIGGER no");
    buy("handed out", "r");
    buy("4", "a third time");
    run({"XREADGROUP", "GROUP", "workers", "w", "STREAMS", "{s}:orders", ">"});
    buy("on his way", "r");
  }

  /// Of a sale that is paid for: every transition, and rows in every state.
  void fill_with_money() {
    for (const auto* const buyer :
         {"awaiting", "paid", "part", "refunding", "refunded", "late", "never", "unpaid"})
      buy(buyer, "r");
    bring_in(8);
    for (const auto* const buyer : {"paid", "part", "refunding", "refunded"}) pay(buyer, buyer);
    for (const auto* const event : {"too little", "settled", "back", "given back"})
      pay("awaiting", event, 1);
    auto& payments = orders->payments();
    payments.settle_payment({"acme", "settled"}, PaymentState::settled, "zoe", "by hand");
    payments.settle_payment({"acme", "given back"}, PaymentState::refunding, "zoe", "too little");
    payments.refund_done(*payments.take_refund("", "acme", std::chrono::hours{1}));
    payments.settle_payment({"acme", "back"}, PaymentState::refunding, "zoe", "too little");
    orders->payments().keep({.provider = "acme",
                             .event = "early",
                             .sale = "s",
                             .order = "MT202001010001",
                             .amount = 5,
                             .currency = "CNY"});
    for (const auto* const key : {"k1", "k2"})
      sale.cancel_units(*orders, {"part"}, {"r"}, key[1] == '1' ? 1 : 0, key, "why");
    for (const auto* const buyer : {"refunding", "refunded"})
      sale.cancel_units(*orders, {buyer}, {"r"}, 0, "k", "ill");
    sale.cancel(*orders, {"unpaid"}, {"r"}, "too dear");
    for (const auto& refund : orders->payments().refunds("s", 10))
      if (refund.event == "refunded" || refund.event == "part")
        orders->payments().refund_done(refund, refund.event == "part" ? "by zoe: cash" : "");
      else
        orders->payments().refund_failed(refund, "not now", std::chrono::hours{1});
    sql("UPDATE sale_orders SET pay_by = pay_by - 2400000000 WHERE buyer IN ('late', 'never')");
    EXPECT_EQ(sale.expire(*orders), 2u);
    pay("late", "late");
    for (const auto& message : orders->payments().take_messages("s", 2, std::chrono::hours{1}))
      orders->payments().message_failed("s", message, {});
  }
  void pay(const std::string& buyer, const std::string& event, std::int64_t amount = 1000) {
    const auto order = orders->find_request("s", {buyer}, {"r"});
    sale.pay(*orders, {.provider = "acme",
                       .event = event,
                       .sale = "s",
                       .order = order->number,
                       .amount = amount,
                       .currency = "CNY"});
  }

  void buy(const std::string& buyer, const std::string& request, std::int64_t units = 2) {
    ASSERT_TRUE(sale.buy(BuyerId{buyer}, RequestId{request}, units).get().has_order());
  }
  void bring_in(std::size_t expected) {
    OrderWorker worker{*store, sale, *orders};
    worker.drain();
    ASSERT_EQ(worker.progress().inserted + worker.progress().dead, expected);
  }
  void sql(const std::string& statement) const {
    soci::session other{soci::sqlite3, "db=" + file};
    other << "PRAGMA synchronous = OFF";
    other << statement;
  }
  std::vector<std::string> column(const std::string& query) const {
    soci::session other{soci::sqlite3, "db=" + file};
    const soci::rowset<std::string> rows = (other.prepare << query);
    return {rows.begin(), rows.end()};
  }
  Value run(std::initializer_list<std::string_view> command) { return store->run(command).get(); }
  SaleAudit look(std::size_t named = 100) { return audit(*store, sale, *orders, {.named = named}); }

  Names failing() {
    Names names;
    for (const auto& check : look().checks)
      if (!check.ok) names.insert(check.name);
    return names;
  }

  std::unique_ptr<Store> store = engine::open_embedded({});
  Sale sale;
  test::TempDir folder;
  std::string file = (folder / "orders.db").string();
  std::unique_ptr<OrderStore> orders = open_order_store("sqlite:" + file);
};

class AuditTest : public testing::Test {
 protected:
  AuditTest() {
    for (int i = 0; i < 8; ++i) shop_.buy(std::to_string(i), "r");
    shop_.bring_in(8);
    shop_.buy("8", "r");  // one is still on its way
  }
  /// A word of the record of a buyer: 0 orders, 1 units, then those of the order.
  void change_record(const std::string& buyer, std::size_t word, const std::string& to) {
    auto text = shop_.run({"HGET", "{s}:buyers", buyer}).as_text();
    std::size_t begin = 0;
    for (; word > 0; --word) begin = text.find(' ', begin) + 1;
    text.replace(begin, std::min(text.find(' ', begin), text.size()) - begin, to);
    shop_.run({"HSET", "{s}:buyers", buyer, text});
  }
  /// "units: 2, 3" of the only difference.
  std::string difference() {
    const auto found = shop_.look();
    if (found.differences.size() != 1)
      return std::to_string(found.differences.size()) + " differences";
    const auto& one = found.differences.front();
    return one.what + ": " + one.in_store + ", " + one.elsewhere;
  }

  Shop shop_{1};
};

TEST_F(AuditTest, FindsNothingWhereNothingIsWrong) {
  EXPECT_EQ(shop_.failing(), Names{});
  const auto found = shop_.look();
  EXPECT_TRUE(found.ok());
  EXPECT_TRUE(found.differences.empty());
  EXPECT_EQ(found.admitted, 9);
  EXPECT_EQ(found.in_database, 8);
  EXPECT_EQ(found.on_the_way, 1);
  EXPECT_EQ(found.dead, 0);
  EXPECT_FALSE(found.unknown.empty()) << "it says what it cannot know";
}

TEST(Audit, FindsNothingWrongInASaleInWhichEverythingOccurs) {
  Shop shop;
  shop.fill();
  const auto found = shop.look();
  for (const auto& check : found.checks)
    EXPECT_TRUE(check.ok) << check.name << ": " << check.detail;
  EXPECT_EQ(found.in_database, 12);
  EXPECT_EQ(found.on_the_way, 4);
  EXPECT_EQ(found.dead, 1);
}

TEST(Audit, OfAnArchivedSaleComparesWhatThereIs) {
  Shop shop;
  for (const auto* const buyer : {"ann", "bob", "cid", "dan"}) shop.buy(buyer, "r");
  shop.sale.cancel(*shop.orders, {"bob"}, {"r"}, "before");
  shop.sale.change_stock(*shop.orders, 60);
  ASSERT_TRUE(shop.sale.archive(*shop.orders));
  shop.sale.cancel(*shop.orders, {"cid"}, {"r"}, "after");
  const auto found = shop.look();
  for (const auto& check : found.checks)
    EXPECT_TRUE(check.ok) << check.name << ": " << check.detail;
  EXPECT_EQ(found.checks.at(1).name, "sale_is_archived");
  EXPECT_EQ(found.admitted, 4);
  EXPECT_EQ(found.in_database, 4);
  EXPECT_EQ(found.on_the_way, 0);

  const std::pair<const char*, const char*> changes[] = {
      {"units = units + 1 WHERE buyer = 'dan'", "units = units - 1 WHERE buyer = 'dan'"},
      {"number = 'MT202001010001' WHERE buyer = 'ann'", ""},
  };
  for (const auto& [change, back] : changes) {
    const auto numbers = shop.column("SELECT number FROM sale_orders WHERE buyer = 'ann'");
    shop.sql(std::string{"UPDATE sale_orders SET "} + change);
    EXPECT_NE(shop.failing(), Names{}) << change;
    shop.sql(std::string{"UPDATE sale_orders SET "} +
             (*back ? back : "number = '" + numbers.front() + "' WHERE buyer = 'ann'"));
    EXPECT_EQ(shop.failing(), Names{}) << change;
  }
  for (const auto* const counter :
       {"sold", "orders", "taken", "capacity", "given_back", "sequence"}) {
    shop.run({"HINCRBY", "{s}:sale", counter, "1"});
    EXPECT_NE(shop.failing(), Names{}) << counter;
    shop.run({"HINCRBY", "{s}:sale", counter, "-1"});
  }
  shop.run({"HSET", "{s}:sale", "limit", "7"});
  EXPECT_EQ(shop.failing(), Names{"definition_that_differs"});
  shop.run({"HSET", "{s}:sale", "limit", "3"});
  shop.run({"HSET", "{s}:buyers", "ann", "left"});
  EXPECT_EQ(shop.failing(), Names{"archive_is_finished"});
  shop.run({"DEL", "{s}:buyers"});
  shop.sql("DELETE FROM sale_orders WHERE buyer = 'ann'");
  EXPECT_NE(shop.failing(), Names{});
}

TEST_F(AuditTest, FindsALostOrder) {
  shop_.sql("DELETE FROM sale_orders WHERE buyer = '3'");
  EXPECT_EQ(shop_.failing(),
            (Names{"database_stock_lost_what_was_ordered", "numbers_dense_and_ids_rising",
                   "orders_admitted_but_nowhere", "orders_counted", "sold_plus_left_is_stock",
                   "units_of_orders_are_sold"}));
}

TEST_F(AuditTest, FindsALostStream) {
  shop_.run({"DEL", "{s}:orders"});
  const auto names = shop_.failing();
  EXPECT_TRUE(names.contains("orders_admitted_but_nowhere"));
  EXPECT_TRUE(names.contains("group_of_workers"));
}

TEST_F(AuditTest, FindsAnOrderThatNobodyWasAdmittedFor) {
  shop_.sql(
      "INSERT INTO sale_orders (sale, id, number, buyer, n, units, issued_us, request) SELECT "
      "sale, "
      "id + 1000, 'MT202001010001', 'thief', 1, 2, 0, 'r' FROM sale_orders WHERE buyer = '7'");
  const auto names = shop_.failing();
  EXPECT_TRUE(names.contains("orders_nobody_was_admitted_for"));
  EXPECT_TRUE(names.contains("database_stock_lost_what_was_ordered"));
}

TEST_F(AuditTest, FindsAStockThatWasChangedByHand) {
  shop_.sql("UPDATE sale_stock SET remaining = remaining + 1");
  EXPECT_EQ(shop_.failing(), (Names{"database_stock_lost_what_was_ordered"}));
}

TEST_F(AuditTest, FindsOverselling) {
  shop_.run({"HSET", "{s}:sale", "sold", "61"});
  EXPECT_EQ(shop_.failing(),
            (Names{"sold_plus_left_is_stock", "units_of_orders_are_sold", "units_oversold"}));
}

TEST_F(AuditTest, FindsABuyerWithTooManyOrders) {
  change_record("4", 0, "2");
  EXPECT_EQ(shop_.failing(), (Names{"buyers_above_limit", "buyers_that_differ"}));
}

TEST_F(AuditTest, FindsThatTheSaleIsGone) {
  shop_.run({"DEL", "{s}:sale"});
  EXPECT_EQ(shop_.failing(), (Names{"sale_is_loaded"}));
}

TEST_F(AuditTest, NamesTheFirstDifferencesAndCountsAll) {
  shop_.sql("UPDATE sale_orders SET issued_us = issued_us + 1");
  const auto found = shop_.look(3);
  EXPECT_EQ(found.differences.size(), 3U);
  const auto check =
      std::ranges::find(found.checks, "orders_of_the_database_that_differ", &AuditCheck::name);
  ASSERT_NE(check, found.checks.end());
  EXPECT_EQ(check->figure, 8);
}

// --- the thirteen that were not noticed ---

TEST_F(AuditTest, E05_01_TheBuyerOfARow) {
  shop_.sql("UPDATE sale_orders SET buyer = 'thief' WHERE buyer = '3'");
  EXPECT_EQ(shop_.failing(),
            (Names{"orders_nobody_was_admitted_for", "orders_of_the_database_that_differ"}));
}
TEST_F(AuditTest, E05_02_TwoBuyersSwapped) {
  shop_.sql(
      "UPDATE sale_orders SET buyer = CASE buyer WHEN '3' THEN 'x' WHEN '4' THEN '3' END "
      "WHERE buyer IN ('3', '4')");
  shop_.sql("UPDATE sale_orders SET buyer = '4' WHERE buyer = 'x'");
  EXPECT_EQ(shop_.failing(), (Names{"orders_of_the_database_that_differ"}));
}
TEST_F(AuditTest, E05_03_UnitsShiftedFromOneRowToAnother) {
  shop_.sql(
      "UPDATE sale_orders SET units = CASE buyer WHEN '3' THEN 3 ELSE 1 END "
      "WHERE buyer IN ('3', '4')");
  EXPECT_EQ(shop_.failing(), (Names{"orders_of_the_database_that_differ"}));
}
TEST_F(AuditTest, E05_04_TheRequestOfARow) {
  shop_.sql("UPDATE sale_orders SET request = 'q' WHERE buyer = '3'");
  EXPECT_EQ(shop_.failing(),
            (Names{"orders_nobody_was_admitted_for", "orders_of_the_database_that_differ"}));
}
TEST_F(AuditTest, E05_05_TheNOfARow) {
  shop_.sql("UPDATE sale_orders SET n = 2 WHERE buyer = '3'");
  EXPECT_EQ(difference(), "n: 1, 2");
}
TEST_F(AuditTest, E05_06_TheInstantOfARow) {
  shop_.sql("UPDATE sale_orders SET issued_us = 5 WHERE buyer = '3'");
  EXPECT_TRUE(difference().starts_with("issued_us: ") && difference().ends_with(", 5"))
      << difference();
}
TEST_F(AuditTest, E05_07_ABuyerOfTheStore) {
  const auto text = shop_.run({"HGET", "{s}:buyers", "3"}).as_text();
  shop_.run({"HDEL", "{s}:buyers", "3"});
  shop_.run({"HSET", "{s}:buyers", "thief", text});
  EXPECT_EQ(shop_.failing(),
            (Names{"orders_nobody_was_admitted_for", "orders_of_the_database_that_differ"}));
}
TEST_F(AuditTest, E05_08_TheNOfARecord) {
  change_record("3", 3, "2");
  EXPECT_TRUE(shop_.failing().contains("orders_of_the_database_that_differ"));
  EXPECT_TRUE(shop_.failing().contains("buyers_that_differ"));
}
TEST_F(AuditTest, E05_09_ARequestOfTheStore) {
  change_record("3", 8, "q");
  EXPECT_EQ(shop_.failing(),
            (Names{"orders_nobody_was_admitted_for", "orders_of_the_database_that_differ"}));
}
TEST_F(AuditTest, E05_10_TheUnitsOfARecord) {
  change_record("3", 6, "1");
  EXPECT_EQ(shop_.failing(), (Names{"buyers_that_differ", "orders_of_the_database_that_differ"}));
}
TEST_F(AuditTest, E05_11_AnotherNumberThanTheDatabaseHas) {
  shop_.sql("UPDATE sale_orders SET number = 'MT202001010001' WHERE buyer = '4'");
  EXPECT_EQ(shop_.failing(),
            (Names{"numbers_dense_and_ids_rising", "orders_of_the_database_that_differ"}));
}
TEST_F(AuditTest, E05_12_TheBuyerInTheStream) {
  const auto entry = shop_.run({"XRANGE", "{s}:orders", "-", "+"}).as_items().at(0);
  shop_.run({"XDEL", "{s}:orders", entry.as_items().at(0).as_text()});
  shop_.run({"XADD", "{s}:orders", "*", "order", entry.as_items().at(1).as_items().at(1).as_text(),
             "buyer", "thief"});
  EXPECT_EQ(shop_.failing(), (Names{"orders_of_the_stream_that_differ"}));
}
TEST_F(AuditTest, E05_13_TheLimitOfTheSale) {
  shop_.run({"HDEL", "{s}:sale", "limit"});
  EXPECT_TRUE(shop_.failing().contains("definition_that_differs"));
}

TEST_F(AuditTest, E06_AnEntryThatIsPendingForNobody) {
  shop_.run({"XREADGROUP", "GROUP", "workers", "w", "STREAMS", "{s}:orders", ">"});
  EXPECT_EQ(shop_.failing(), Names{});
  shop_.run({"XGROUP", "DELCONSUMER", "{s}:orders", "workers", "w"});
  EXPECT_EQ(shop_.failing(), (Names{"entries_handed_to_nobody"}));
}
TEST_F(AuditTest, E06_AGroupThatIsLost) {
  shop_.run({"XGROUP", "DESTROY", "{s}:orders", "workers"});
  EXPECT_EQ(shop_.failing(), (Names{"group_of_workers"}));
}

TEST_F(AuditTest, AChangeOfTheStockMeanwhileIsNoDifference) {
  test::WatchedOrders watched{*shop_.orders};
  int changes = 0;
  watched.before = [&](std::string_view call) {
    if (call == "totals" && changes < 3) shop_.sale.change_stock(*shop_.orders, 61 + changes++);
  };
  EXPECT_TRUE(audit(*shop_.store, shop_.sale, watched).ok());
  EXPECT_EQ(changes, 3);
  shop_.run({"HINCRBY", "{s}:sale", "capacity", "1"});
  EXPECT_EQ(shop_.failing(), Names{"counters_that_differ"});
}

TEST(Audit, OfASaleThatNoWorkerHasEnteredYetComparesWhatThereIs) {
  Shop shop;
  EXPECT_TRUE(shop.look().ok());
  shop.buy("ann", "r");
  const auto found = shop.look();
  EXPECT_TRUE(found.ok());
  EXPECT_EQ(found.on_the_way, 1);
  EXPECT_TRUE(std::ranges::any_of(found.unknown, [](const std::string& what) {
    return what.find("does not know the sale yet") != std::string::npos;
  }));
  shop.bring_in(1);
  const auto other = open_order_store("sqlite::memory:");  // where it has gone from the stream
  EXPECT_FALSE(audit(*shop.store, shop.sale, *other).ok());
}

TEST_F(AuditTest, TellsARecoveryThatHasNotEndedFromAnotherStore) {
  const auto says = [&](const std::string& what) {
    const auto checks = shop_.look().checks;
    const auto found = std::ranges::find(checks, "store_is_the_same", &AuditCheck::name);
    EXPECT_FALSE(found->ok);
    EXPECT_NE(found->detail.find(what), std::string::npos) << found->detail;
  };
  shop_.run({"HSET", "{s}:sale", "recovering", "c0ffee"});
  says("a recovery of it has not ended");
  shop_.run({"HSET", "{s}:sale", "recovering", "lost"});
  says("the store lost the sale, and it was created again");
  shop_.run({"HDEL", "{s}:sale", "recovering"});
  shop_.run({"HSET", "{s}:sale", "store", "c0ffee"});
  says("another server took its place");
}

// --- figures beyond any sum ---

constexpr std::string_view largest = "9223372036854775807";

TEST_F(AuditTest, AnEntryOfTooManyUnitsIsADeadLetterAndEndsNobody) {
  auto entry = shop_.run({"XRANGE", "{s}:orders", "-", "+"}).as_items().at(0);
  auto order = entry.as_items().at(1).as_items().at(1).as_text();
  std::size_t at = 0;  // of the units
  for (int word = 0; word < 4; ++word) at = order.find(' ', at) + 1;
  order.replace(at, order.find(' ', at) - at, largest);
  for (const auto* const buyer : {"forger", "8"})
    shop_.run({"XADD", "{s}:orders", "*", "order", order, "buyer", buyer});
  OrderWorker worker{*shop_.store, shop_.sale, *shop_.orders};
  worker.drain();
  EXPECT_EQ(worker.progress().inserted, 1U);
  EXPECT_EQ(worker.progress().dead, 2U);
  EXPECT_EQ(shop_.failing(), Names{"entries_that_make_no_order"});
  EXPECT_EQ(recover(*shop_.store, "s", *shop_.orders).in_database, 9);
}

TEST_F(AuditTest, RowsOfTooManyUnitsAreNamedAndARecoverySaysWhich) {
  shop_.sql("UPDATE sale_orders SET units = " + std::string{largest} + " WHERE buyer IN ('3','4')");
  const auto found = shop_.look();
  EXPECT_FALSE(found.ok());
  EXPECT_TRUE(std::ranges::any_of(found.differences, [](const auto& one) {
    return one.what == "units" && one.elsewhere == largest;
  }));
  try {
    recover(*shop_.store, "s", *shop_.orders);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::corrupt);
    EXPECT_NE(error.message().find("0004 with id "), std::string::npos) << error.what();
  }
}

TEST_F(AuditTest, CountersThatNoSaleWritesAreNamed) {
  for (const auto* const field : {"sold", "capacity", "orders"}) {
    const auto was = shop_.run({"HGET", "{s}:sale", field}).as_text();
    for (const std::string_view to : {largest, std::string_view{"x"}, std::string_view{""}}) {
      shop_.run({"HSET", "{s}:sale", field, to});
      EXPECT_FALSE(shop_.look().ok()) << field;
      try {
        shop_.sale.status().get();
        ADD_FAILURE();
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::corrupt);
        EXPECT_NE(error.message().find(std::string{"its "} + field), std::string::npos)
            << error.what();
      }
    }
    shop_.run({"HSET", "{s}:sale", field, was});
  }
  shop_.run({"HSET", "{s}:sale", "digits", "2147483647"});
  try {
    Sale::load(*shop_.store, "s").get();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::corrupt);
    EXPECT_NE(error.message().find("digits is 99"), std::string::npos) << error.what();
  }
}

// --- any one field anywhere ---

struct Change {
  std::string name;
  std::function<void(Shop&)> make;
  bool can_be_undone = true;
};

constexpr const char* hashes[] = {"{s}:sale", "{s}:buyers", "{s}:requests", "{s}:returned"};
/// With their keys.
const std::pair<std::string, std::string> tables[] = {{"sale_stock", "id"},
                                                      {"sale_orders", "sale, id"},
                                                      {"sale_returns", "sale, order_id, seq"},
                                                      {"sale_changes", "sale, seq"},
                                                      {"sale_definitions", "sale, field"},
                                                      {"sale_payments", "provider, event"},
                                                      {"sale_refunds", "sale, order_id, seq"},
                                                      {"sale_messages", "sale, order_id, seq"}};

/// The hashes and the tables of a shop as they were, again and again.
class Restorer {
 public:
  explicit Restorer(Shop& shop) : shop_(shop) {
    for (const auto* const hash : hashes) {
      const auto fields = shop.run({"HGETALL", hash});
      for (const auto& word : fields.as_items()) words_[hash].push_back(word.as_text());
    }
    for (const auto& [table, key] : tables)
      shop.sql("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table);
  }
  void restore() {
    for (const auto* const key : {"{s}:orders", "{s}:dead", "sluice:sales:names"})
      shop_.run({"PERSIST", key});
    shop_.run({"SET", "sluice:sales", "1"});
    shop_.run({"ZADD", "sluice:sales:names", "1", "s"});
    shop_.run({"DEL", "sluice:sales:types"});
    shop_.run({"HSET", "sluice:sales:types", "MT", "s"});
    for (const auto& [hash, words] : words_) {
      shop_.run({"DEL", hash});
      std::vector<std::string_view> command{"HSET", hash};
      command.insert(command.end(), words.begin(), words.end());
      if (!words.empty()) shop_.store->run(Words{command}).get();
    }
    soci::session other{soci::sqlite3, "db=" + shop_.file};
    other << "PRAGMA synchronous = OFF";
    other << "BEGIN";
    for (const auto& [table, key] : tables) other << "DELETE FROM " + table;
    for (const auto& [table, key] : tables)
      other << "INSERT INTO " + table + " SELECT * FROM kept_" + table;
    other << "COMMIT";
  }

 private:
  Shop& shop_;
  std::map<std::string, std::vector<std::string>> words_;
};

/// Another value of the same kind.
std::string other(const std::string& value) {
  if (value.empty()) return "7";
  auto changed = value;
  auto& last = changed.back();
  last = last == '7' ? '8' : last >= '0' && last <= '9' ? '7' : last == 'q' ? 'x' : 'q';
  return changed;
}

/// A word made another in many ways: of the same kind, empty, cut short, with a zero in front, and
/// as large as an integer can be.
std::vector<std::string> all_others_of_word(const std::string& word) {
  std::vector<std::string> all{other(word)};
  if (word.empty()) return all;
  all.push_back("");
  if (word.size() > 1) all.push_back(word.substr(0, word.size() - 1));
  if (!std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; })) return all;
  for (const auto& number : {"0" + word, "-" + word, std::string{"9223372036854775807"},
                             std::string{"-9223372036854775808"}})
    if (number != "-0") all.push_back(number);
  return all;
}

/// All of them, or, where there are many such words, each time another of them.
std::vector<std::string> others_of_word(const std::string& word, bool one_by_one = false) {
  static std::size_t turn = 0;
  auto all = all_others_of_word(word);
  if (one_by_one) all = {all.front(), all[++turn % all.size()]};
  return all;
}

/// Each word of a text made another.
std::vector<std::string> others(const std::string& text, bool one_by_one) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    for (const auto& word : others_of_word(text.substr(begin, end - begin), one_by_one))
      all.push_back(text.substr(0, begin) + word + text.substr(end));
    begin = end + 1;
  }
  return all;
}

void add_hash(std::vector<Change>& changes, Shop& shop, const std::string& key) {
  const auto all = shop.run({"HGETALL", key});
  for (std::size_t i = 0; i + 1 < all.as_items().size(); i += 2) {
    const auto field = all.as_items()[i].as_text();
    const auto value = all.as_items()[i + 1].as_text();
    if (field == "mark") continue;  // it may be behind, and one that is ahead shuts the sale
    for (const auto& to : others(value, key != "{s}:sale"))
      changes.push_back({key + " " + field + ": '" + value + "' -> '" + to + "'", [=](Shop& at) {
                           at.run({"HSET", key, field, to});
                         }});
    changes.push_back({key + " without " + field, [=](Shop& at) { at.run({"HDEL", key, field}); }});
    changes.push_back({key + " renames " + field, [=](Shop& at) {
                         at.run({"HDEL", key, field});
                         at.run({"HSET", key, other(field), value});
                       }});
  }
}

/// Ids of entries are others in each shop: so they are named by their place.
void add_stream(std::vector<Change>& changes, Shop& shop, const std::string& key) {
  const auto count = shop.run({"XLEN", key}).as_integer();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto entry_of = [key, i](Shop& at) {
      return at.run({"XRANGE", key, "-", "+"}).as_items().at(static_cast<std::size_t>(i));
    };
    const auto name = key + "[" + std::to_string(i) + "] ";
    changes.push_back({name + "deleted", [=](Shop& at) {
                         at.run({"XDEL", key, entry_of(at).as_items().at(0).as_text()});
                       }});
    const auto fields = entry_of(shop).as_items().at(1).as_items();
    for (std::size_t field = 0; field + 1 < fields.size(); field += 2) {
      const auto what = fields[field].as_text();
      if (what == "reason" || what == "entry") continue;  // what is told of a dead letter
      const auto words = others(fields[field + 1].as_text(), false).size();
      for (auto word = static_cast<std::size_t>(i) % 3; word < words;
           word += 3)  // each costs a shop
        changes.push_back({name + what + " word " + std::to_string(word), [=](Shop& at) {
                             const auto entry = entry_of(at);
                             auto all = entry.as_items().at(1).as_items();
                             std::vector<std::string> texts;
                             for (const auto& text : all) texts.push_back(text.as_text());
                             texts[field + 1] = others(texts[field + 1], false).at(word);
                             std::vector<std::string_view> words_of{"XADD", key, "*"};
                             words_of.insert(words_of.end(), texts.begin(), texts.end());
                             at.run({"XDEL", key, entry.as_items().at(0).as_text()});
                             at.store->run(Words{words_of}).get();
                           }});
    }
  }
}

/// Each column of each row, and each row.
void add_table(std::vector<Change>& changes, const Shop& shop, const std::string& table,
               const std::string& key, const std::vector<std::string>& columns,
               const std::string& which = "1 = 1", bool with_rows = true) {
  const auto rows =
      shop.column("SELECT CAST(rowid AS TEXT) FROM (SELECT row_number() OVER (ORDER BY " + key +
                  ") AS rowid FROM " + table + " WHERE " + which + ")");
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto where = " WHERE (" + key + ") IN (SELECT " + key + " FROM " + table + " WHERE " +
                       which + " ORDER BY " + key + " LIMIT 1 OFFSET " + std::to_string(row) + ")";
    const auto name = table + "[" + std::to_string(row) + "] ";
    if (with_rows)
      changes.push_back(
          {name + "deleted", [=](Shop& at) { at.sql("DELETE FROM " + table + where); }});
    for (const auto& column : columns) {
      const auto value =
          shop.column("SELECT CAST(" + column + " AS TEXT) FROM " + table + where).at(0);
      const auto is_number =
          shop.column("SELECT typeof(" + column + ") FROM " + table + where).at(0) == "integer";
      for (const auto& to : others_of_word(value, rows.size() > 3)) {
        if (is_number && to == "0" + value) continue;  // the same to the database
        changes.push_back({name + column + ": '" + value + "' -> '" + to + "'", [=](Shop& at) {
                             at.sql("UPDATE " + table + " SET " + column + " = '" + to + "'" +
                                    where);
                           }});
      }
    }
  }
}

std::vector<Change> all_changes(Shop& shop) {
  std::vector<Change> changes;
  for (const auto* const key : hashes) add_hash(changes, shop, key);
  for (const std::string key :
       {"{s}:sale", "{s}:buyers", "{s}:requests", "{s}:returned", "{s}:orders", "{s}:dead",
        "sluice:sales", "sluice:sales:names", "sluice:sales:types"})
    changes.push_back({key + " expires", [=](Shop& at) { at.run({"PEXPIRE", key, "100000000"}); }});
  for (const std::string key : {"sluice:sales", "sluice:sales:names", "sluice:sales:types"})
    changes.push_back({key + " deleted", [=](Shop& at) { at.run({"DEL", key}); }});
  changes.push_back({"another sale has the type", [](Shop& at) {
                       at.run({"HSET", "sluice:sales:types", "MT", "x"});
                     }});
  for (const auto* const value : {"0", "", "x", "01", "-1"})
    changes.push_back({std::string{"sluice:sales "} + value, [=](Shop& at) {
                         at.run({"SET", "sluice:sales", value});
                       }});
  for (const auto* const field : {"store", "recovering", "archived", "closed", "gaps", "refused"})
    for (const auto* const value : {"", "0", "x", "-1", "01", "9223372036854775807"})
      if (std::string_view{"gaps 0"} != std::string{field} + " " + value)
        changes.push_back({std::string{field} + " is made '" + value + "'", [=](Shop& at) {
                             at.run({"HSET", "{s}:sale", field, value});
                           }});
  changes.push_back({"a return more", [](Shop& at) {
                       at.run({"HSET", "{s}:returned", "17:1", "1"});
                     }});
  add_table(changes, shop, "sale_orders", "sale, id",
            {"id", "number", "buyer", "n", "units", "issued_us", "request", "state", "version"});
  add_table(changes, shop, "sale_stock", "id",
            {"name", "initial", "remaining", "changed", "epoch"});
  add_table(changes, shop, "sale_returns", "sale, order_id, seq", {"order_id", "seq", "units"});
  for (const auto* const done : {"2", "-1", "x", ""})
    changes.push_back({std::string{"sale_returns done "} + done, [=](Shop& at) {
                         at.sql(std::string{"UPDATE sale_returns SET done = '"} + done + "'");
                       }});
  for (const auto* const row : {"17, 1, 1, 0", "17, 1, 1, 1"})
    changes.push_back({std::string{"sale_returns gets "} + row, [=](Shop& at) {
                         at.sql(std::string{"INSERT INTO sale_returns SELECT id, "} + row +
                                " FROM sale_stock");
                       }});
  add_table(changes, shop, "sale_changes", "sale, seq", {"seq", "state"});
  add_table(changes, shop, "sale_changes", "sale, seq", {"delta"}, "state = 'done'");
  for (const auto* const table : {"sale_returns", "sale_changes", "sale_definitions"})
    changes.push_back({std::string{table} + " emptied",
                       [=](Shop& at) { at.sql(std::string{"DELETE FROM "} + table); }});
  changes.push_back({"old changes pending", [](Shop& at) {
                       at.sql("UPDATE sale_changes SET state = 'pending' WHERE seq < 3");
                     }});
  add_table(changes, shop, "sale_definitions", "sale, field", {"field", "value"});
  changes.push_back({"a reason", [](Shop& at) {
                       at.sql("UPDATE sale_orders SET reason = 'x' WHERE state = 'awaiting'");
                     }});
  const auto undone = changes.size();
  for (const auto* const key : {"{s}:orders", "{s}:dead"}) add_stream(changes, shop, key);
  for (const auto* const words :
       {"DESTROY workers", "DELCONSUMER workers w", "SETID workers 0", "SETID workers $"})
    changes.push_back({std::string{"XGROUP "} + words, [=](Shop& at) {
                         std::vector<std::string> all{"XGROUP"};
                         std::string word;
                         for (const char c : std::string{words} + " ") {
                           if (c != ' ') {
                             word += c;
                           } else {
                             all.push_back(std::exchange(word, {}));
                           }
                         }
                         all.insert(all.begin() + 2, "{s}:orders");
                         const std::vector<std::string_view> views{all.begin(), all.end()};
                         at.store->run(Words{views}).get();
                       }});
  changes.push_back(
      {"an entry acknowledged and left", [](Shop& at) {
         const auto all = at.run({"XPENDING", "{s}:orders", "workers", "-", "+", "1"});
         at.run({"XACK", "{s}:orders", "workers", all.as_items().at(0).as_items().at(0).as_text()});
       }});
  for (auto at = undone; at < changes.size(); ++at) changes[at].can_be_undone = false;
  return changes;
}

bool is_noticed(Shop& shop, const Change& change) {
  try {
    change.make(shop);
    const auto sale = Sale::load(*shop.store, "s").get();
    return !sale || !audit(*shop.store, *sale, *shop.orders).ok();
  } catch (const std::exception&) {
    return true;  // the database refuses it, or the sale cannot even be loaded
  }
}

/// Each column of each table that the database has, but where an audit says that nobody knows it.
std::vector<Change> all_changes_of_columns(const Shop& shop) {
  std::vector<Change> changes;
  for (const auto& [table, key] : tables)
    for (const auto& column : shop.column("SELECT name FROM pragma_table_info('" + table + "')")) {
      std::string which = "1 = 1";
      for (const auto& unknown : sale::unknown_columns)
        if (unknown.table == table && unknown.name == column)
          which = unknown.rows.empty() ? "1 = 0" : "NOT (" + std::string{unknown.rows} + ")";
      add_table(changes, shop, table, key, {column}, which, false);
    }
  return changes;
}

/// With SLUICE_LONG each change is tried.
std::size_t stride() {
  if (std::getenv("SLUICE_LONG")) return 1;
  return test::is_sanitized ? 101 : 19;
}

std::vector<std::string> unnoticed(Shop& shop, const std::vector<Change>& changes) {
  std::vector<std::string> names;
  Restorer before{shop};
  for (std::size_t i = 0; i < changes.size(); i += stride()) {
    if (!is_noticed(shop, changes[i])) names.push_back(changes[i].name);
    before.restore();
  }
  EXPECT_TRUE(shop.look().ok()) << "what was undone is as it was";
  return names;
}

TEST(Audit, CO05_EveryColumnOfASaleThatIsPaidForIsComparedOrDeclaredUnknown) {
  Shop shop{3, PaymentTerms{.price = 500, .currency = "CNY"}};
  shop.fill_with_money();
  for (const auto& check : shop.look().checks)
    ASSERT_TRUE(check.ok) << check.name << ": " << check.detail;
  const auto changes = all_changes_of_columns(shop);
  EXPECT_GT(changes.size(), 600U);
  const auto names = unnoticed(shop, changes);
  EXPECT_TRUE(names.empty()) << names.size() << " of " << changes.size() << ": "
                             << fmt::format("{}", fmt::join(names, "\n"));
  const auto said = fmt::format("{}", fmt::join(shop.look().unknown, "\n"));
  for (const auto& column : sale::unknown_columns)
    EXPECT_TRUE(said.contains(fmt::format("{} ({}.{})", column.what, column.table, column.name)));
}

TEST(Audit, CO05_EveryColumnOfASaleWithoutPaymentIsComparedOrDeclaredUnknown) {
  Shop shop;
  shop.fill();
  shop.sql("DELETE FROM sale_payments");
  const auto names = unnoticed(shop, all_changes_of_columns(shop));
  EXPECT_TRUE(names.empty()) << fmt::format("{}", fmt::join(names, "\n"));
}

TEST(Audit, CO05_TellsFalsifiedMoney) {
  Shop shop{3, PaymentTerms{.price = 500, .currency = "CNY"}};
  shop.fill_with_money();
  const auto expect_found = [&](const std::string& change) {
    Restorer before{shop};
    shop.sql(change);
    EXPECT_NE(shop.failing(), Names{}) << change;
    before.restore();
    for (const auto& [table, key] : tables) shop.sql("DROP TABLE kept_" + table);
  };
  expect_found("UPDATE sale_orders SET pay_by = pay_by + 315360000000000 WHERE buyer = 'awaiting'");
  expect_found("UPDATE sale_orders SET pay_by = pay_by - 315360000000000 WHERE buyer = 'awaiting'");
  expect_found("UPDATE sale_refunds SET provider = 'thief'");
  expect_found("UPDATE sale_refunds SET state = 'gone' WHERE event = 'refunding'");
  expect_found("UPDATE sale_payments SET currency = 'USD' WHERE event = 'paid'");
  expect_found("UPDATE sale_payments SET order_id = 17 WHERE event = 'paid'");
  expect_found("UPDATE sale_messages SET data = ''");
  expect_found("UPDATE sale_messages SET state = 'lost'");
}

// A sale whose orders go elsewhere now.
TEST(Audit, CO05_TellsAnotherDatabaseOfTheSameName) {
  Shop shop;
  shop.fill();
  shop.sql("UPDATE sale_database SET identity = 'c0ffee'");
  shop.orders = open_order_store("sqlite:" + shop.file);
  EXPECT_EQ(shop.failing(), Names{"definition_that_differs"});
}

TEST(Audit, NoticesAnyOneFieldThatIsChangedAnywhere) {
  Shop shop;
  shop.fill();
  const auto changes = all_changes(shop);
  EXPECT_GT(changes.size(), 900U);
  Restorer before{shop};
  for (std::size_t i = 0; i < changes.size(); i += stride()) {
    const auto& change = changes[i];
    if (change.can_be_undone) {
      EXPECT_TRUE(is_noticed(shop, change)) << change.name;
      before.restore();
      continue;
    }
    Shop own;
    own.fill();
    EXPECT_TRUE(is_noticed(own, change)) << change.name;
  }
  EXPECT_TRUE(shop.look().ok()) << "what was undone is as it was";
}

}  // namespace
}  // namespace sluice
