#include <sqlite3/soci-sqlite3.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/random.hpp"
#include "sale/sql/soci.hpp"
#include "server/problems.hpp"
#include "server/sales_text.hpp"
#include "server/shop_fixture.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::server {
namespace {

class Sales : public ShopTest {
 protected:
  Answer show(std::string_view buyer, const Answer& bought) const {
    return ask("GET", "/v1/sales/tea/orders/" + bought.text("id"), {{"Sluice-Buyer", buyer}});
  }
  bool is_recorded(std::string_view buyer, const Answer& bought) const {
    const auto shown = show(buyer, bought);
    return shown.status == 200 && *shown.json().find("recorded")->as_bool();
  }
};

/// The database is written to by somebody else for a while.
TEST_F(Sales, WhatIsOnItsWayToTheDatabaseIsNeverSaidNotToExist) {
  begin({tea(9, 0)});
  ASSERT_TRUE(test::comes_true([&] { return is_recorded("ann", buy("ann", "k0")); }));
  soci::session somebody{soci::sqlite3, "db=" + (folder_ / "orders.db").string()};
  somebody << "PRAGMA busy_timeout = 10000";
  somebody << "BEGIN IMMEDIATE";
  const auto first = buy("ann", "k1");
  const auto last = buy("ann", "k2");
  EXPECT_EQ(show("ann", last).status, 200);
  EXPECT_FALSE(show("ann", last).has("ETag:")) << "it will be another when it is recorded";
  const auto not_yet = show("ann", first);
  EXPECT_EQ(not_yet.status, 503) << not_yet.body;
  EXPECT_TRUE(not_yet.has("Retry-After: 1"));
  EXPECT_EQ(show("bob", first).problem(), "no-order");
  somebody << "ROLLBACK";
  EXPECT_TRUE(test::comes_true([&] { return is_recorded("ann", first); }));
  EXPECT_TRUE(show("ann", first).has("ETag:"));
  ASSERT_TRUE(test::comes_true([&] { return is_recorded("ann", last); }));
  EXPECT_EQ(show("ann", {.status = 201, .head = {}, .body = R"({"id":"5"})"}).problem(),
            "no-order");
}

TEST_F(Sales, AnOrderIsBoughtShownAndCancelled) {
  begin({tea(3)});
  const auto bought = buy("ann", "k1", R"({"units":2})");
  EXPECT_EQ(bought.status, 201) << bought.body;
  EXPECT_EQ(bought.text("state"), "awaiting");
  const auto path = "/v1/sales/tea/orders/" + bought.text("id");
  EXPECT_TRUE(bought.has("Location: " + path));

  ASSERT_TRUE(test::comes_true([&] { return is_recorded("ann", bought); }));
  const auto shown = ask("GET", path, {{"Sluice-Buyer", "ann"}});
  EXPECT_EQ(shown.status, 200);
  EXPECT_EQ(shown.text("number"), bought.text("number"));
  EXPECT_TRUE(shown.has("ETag: \"2-awaiting-0\""));
  EXPECT_EQ(
      ask("GET", path, {{"Sluice-Buyer", "ann"}, {"If-None-Match", "\"2-awaiting-0\""}}).status,
      304);
  EXPECT_EQ(
      ask("GET", "/v1/sales/tea/orders/" + bought.text("number"), {{"Sluice-Buyer", "ann"}}).status,
      200);
  EXPECT_EQ(ask("GET", path, {{"Sluice-Buyer", "bob"}}).problem(), "no-order") << "another's";

  EXPECT_EQ(ask("POST", path + "/cancel", {{"Sluice-Buyer", "bob"}}).problem(), "no-order");
  EXPECT_EQ(ask("POST", path + "/cancel", {{"Sluice-Buyer", "ann"}, {"If-Match", "\"9\""}}).status,
            412);
  const auto cancelled =
      ask("POST", path + "/cancel", {{"Sluice-Buyer", "ann"}}, R"({"reason":"too much"})");
  EXPECT_EQ(cancelled.text("state"), "cancelled") << cancelled.body;
  EXPECT_EQ(*ask("GET", "/v1/sales/tea").json().find("left")->as_integer(), 3);
  EXPECT_EQ(buy("ann", "k1", R"({"units":2})").problem(), "order-ended");
  EXPECT_EQ(buy("ann", "k2").status, 201);
}

TEST_F(Sales, V02_TheSameKeyFiftyTimesAtOnceIsOneOrder) {
  begin({tea(100)});
  std::vector<std::jthread> buyers;
  std::mutex mutex;
  std::multiset<int> answers;
  std::set<std::string> orders;
  for (int i = 0; i < 50; ++i)
    buyers.emplace_back([&] {
      const auto answer = buy("ann", "one wish");
      const std::lock_guard lock{mutex};
      answers.insert(answer.status);
      orders.insert(answer.text("id"));
    });
  buyers.clear();
  EXPECT_EQ(answers.count(201), 1U);
  EXPECT_EQ(answers.count(200), 49U);
  EXPECT_EQ(orders.size(), 1U);
  EXPECT_EQ(*ask("GET", "/v1/sales/tea").json().find("sold")->as_integer(), 1);
}

TEST_F(Sales, V03_TheSameKeyWithOtherUnitsTakesNothing) {
  begin({tea(10)});
  const auto first = buy("ann", "k", R"({"units":2})");
  const auto other = buy("ann", "k", R"({"units":3})");
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(other.problem(), "other-units");
  EXPECT_EQ(*other.json().find("order")->find("id")->as_text(), first.text("id"));
  EXPECT_EQ(*ask("GET", "/v1/sales/tea").json().find("sold")->as_integer(), 2);
}

TEST_F(Sales, EachRefusalHasItsProblem) {
  const auto now = system_clock().wall();
  begin({tea(3),
         {.name = "later", .stock = 1, .opens_at = now + 1h, .number_type = "L"},
         {.name = "many", .stock = 9, .limit = 0, .unit_limit = 4, .number_type = "M"}});
  EXPECT_EQ(buy("ann", "k", R"({"units":5})").problem(), "not-enough");
  EXPECT_EQ(*buy("ann", "k", R"({"units":5})").json().find("left")->as_integer(), 3);
  EXPECT_EQ(buy("ann", "k").status, 201);
  const auto again = buy("ann", "k2");
  EXPECT_EQ(again.problem(), "already-bought");
  EXPECT_TRUE(again.json().find("order"));
  EXPECT_EQ(buy("bob", "k", R"({"units":2})").status, 201);
  EXPECT_EQ(buy("cid", "k").problem(), "sold-out");
  const auto early = buy("ann", "k", {}, "later");
  EXPECT_EQ(early.problem(), "not-started");
  EXPECT_TRUE(early.has("Retry-After: 3")) << "an hour: " << early.head;
  EXPECT_EQ(buy("ann", "k", R"({"units":5})", "many").problem(), "too-many-units");
  EXPECT_EQ(buy("ann", "k", {}, "none").problem(), "no-sale");
  service_->shop().find("tea")->sale().close().get();
  EXPECT_EQ(buy("dan", "k").problem(), "closed");
}

TEST_F(Sales, WhatIsNoRequestIsRefusedWithItsReason) {
  begin({tea(3)});
  const auto to = "/v1/sales/tea/orders";
  EXPECT_EQ(ask("POST", to, {{"Sluice-Buyer", "ann"}}).problem(), "no-idempotency-key");
  EXPECT_EQ(ask("POST", to, {{"Idempotency-Key", "k"}}).problem(), "unknown-buyer");
  EXPECT_EQ(buy("", "k").problem(), "unknown-buyer");
  EXPECT_EQ(buy(std::string(129, 'a'), "k").problem(), "unknown-buyer");
  for (const auto* const key : {"\"\"", "\"a", "a\\b", "\"a\"b\""})
    EXPECT_EQ(buy("ann", key).problem(), "no-idempotency-key") << key;
  for (const auto* const body :
       {"[]", "1", "{", "{\"unit\":1}", "{\"units\":0}", "{\"units\":-1}", "{\"units\":1.5}",
        "{\"units\":\"1\"}", "{\"units\":1,\"units\":2}", "{\"units\":null}"})
    EXPECT_EQ(buy("ann", "k", body).problem(), "bad-body") << body;
  EXPECT_EQ(*ask("GET", "/v1/sales/tea").json().find("sold")->as_integer(), 0);
}

// What stands between us and the buyer may have looked at the other one.
TEST_F(Sales, AFieldThatStandsTwiceIsRefused) {
  begin({tea(3)});
  const auto to = "/v1/sales/tea/orders";
  EXPECT_EQ(
      ask("POST", to, {{"Sluice-Buyer", "ann"}, {"Sluice-Buyer", "bob"}, {"Idempotency-Key", "k"}})
          .problem(),
      "unknown-buyer");
  EXPECT_EQ(
      ask("POST", to, {{"Sluice-Buyer", "ann"}, {"Idempotency-Key", "k"}, {"Idempotency-Key", "l"}})
          .problem(),
      "no-idempotency-key");
}

TEST_F(Sales, TokensSayWhoBuys) {
  const TokenKeys keys{{{.id = "k1", .secret = random_hex_128()}}};
  auto how = options();
  how.keys = keys;
  begin({tea(9, 0)}, std::move(how));
  const auto later = system_clock().wall() + 1h;
  const auto with = [&](const std::string& token) {
    return ask("POST", "/v1/sales/tea/orders",
               {{"Authorization", "Bearer " + token}, {"Idempotency-Key", "k"}});
  };
  EXPECT_EQ(with(buyer_token(keys, "ann", "tea", later)).status, 201);
  EXPECT_EQ(with(buyer_token(keys, "bob", "*", later)).status, 201);
  EXPECT_EQ(with(buyer_token(keys, "ann", "maotai", later)).problem(), "not-yours");
  EXPECT_EQ(with(buyer_token(keys, "ann", "tea", later - 2h)).problem(), "unknown-buyer");
  const TokenKeys others{{{.id = "k1", .secret = random_hex_128()}}};
  const auto forged = with(buyer_token(others, "ann", "tea", later));
  EXPECT_EQ(forged.status, 401);
  EXPECT_TRUE(forged.has("WWW-Authenticate: Bearer"));
  EXPECT_EQ(buy("ann", "k").status, 401) << "nobody is believed where there are keys";
  const auto token = buyer_token(keys, "ann", "tea", later);
  EXPECT_EQ(ask("POST", "/v1/sales/tea/orders",
                {{"Authorization", "Bearer " + token},
                 {"Authorization", "Bearer " + token},
                 {"Idempotency-Key", "k"}})
                .status,
            401);
}

TEST_F(Sales, SalesOfOtherProcessesAreFound) {
  begin({});
  EXPECT_EQ(buy("ann", "k").problem(), "no-sale");
  const auto orders = open_order_store(options().shop.orders);
  Sale::create(*store_, tea(3), *orders);
  EXPECT_TRUE(test::comes_true([&] { return buy("ann", "k").status == 201; }));
}

// The last one at a database that was locked would wait for its turn; a damaged sale is nobody
// else's trouble.
TEST_F(Sales, ADamagedSaleHoldsUpNoOther) {
  begin({tea(3)});
  service_.reset();
  store_->run({"HSET", "{broken}:sale", "format", "x"}).get();
  store_->run({"ZADD", "sluice:sales:names", "7", "broken"}).get();
  begin({});
  EXPECT_EQ(buy("ann", "k").status, 201);
  EXPECT_EQ(buy("ann", "k", {}, "broken").status, 503);
}

TEST_F(Sales, OrdersOfAnotherDatabaseAreRefusedAtTheStart) {
  begin({tea(3)});
  EXPECT_EQ(buy("ann", "k").status, 201);
  service_.reset();
  auto other = options();
  other.shop.orders = "sqlite:" + (folder_ / "other.db").string();
  try {
    begin({tea(3)}, std::move(other));
    FAIL() << "begun";
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.errc(), Errc::config_mismatch) << refusal.what();
  }
}

TEST_F(Sales, EveryOrderIsInTheDatabaseAtTheEnd) {
  begin({tea(40)});
  std::vector<std::jthread> buyers;
  std::atomic<int> told{0};
  for (int i = 0; i < 60; ++i)
    buyers.emplace_back([&, i] { told += buy(fmt::format("b{}", i), "k").status == 201; });
  buyers.clear();
  EXPECT_EQ(told, 40);
  service_->stop(20s, 0s);
  service_.reset();
  const auto orders = open_order_store(options().shop.orders);
  auto sale = Sale::load(*store_, "tea").get();
  ASSERT_TRUE(sale);
  OrderWorker{*store_, *sale, *orders, {.claim_after = 1ms}}.drain();
  const auto found = audit(*store_, *sale, *orders);
  EXPECT_TRUE(found.ok());
  EXPECT_EQ(found.in_database, 40);
}

TEST_F(Sales, V53_EachRouteAndEachProblemIsInTheInterface) {
  auto how = options();
  const WebhookKeys secrets{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}};
  how.providers = {std::make_shared<HmacPayments>("acme", secrets)};
  how.shop_keys = ShopKeys{{{"till", {Scope::orders}, std::string(32, 'x')}}};
  begin({tea(3)}, std::move(how));
  const auto text = ask("GET", "/openapi.json").body;
  const auto document = JsonValue::parse(text, {.bytes = 1 << 20, .depth = 64, .members = 1000});
  EXPECT_TRUE(document) << document.error();
  EXPECT_LT(text.size(), http::Limits{}.unsent * 2) << "to a client that does not read it";
  for (const auto* const operation :
       {"list_sales", "show_sale", "buy", "show_order", "cancel_order", "enter_queue", "show_place",
        "leave_queue", "show_draw", "take_payment", "list_orders", "refund_order", "watch_sale"})
    EXPECT_NE(text.find(fmt::format("\"operationId\":\"{}\"", operation)), text.npos) << operation;
  for (const auto* const problem : all_problems) {
    if (problem == &problems::bad_parameter) continue;  // of what the library refuses
    EXPECT_NE(text.find(http::type_of(*problem)), text.npos) << problem->name;
  }
}

TEST_F(Sales, SV07_WhileItsDatabaseIsGoneItIsReadyAndSaysSo) {
  begin({tea(3)});
  const auto ready = [&] { return test::ask(service_->health_port(), "GET", "/readyz"); };
  EXPECT_EQ(ready().text("trouble"), "");
  std::filesystem::remove(folder_ / "orders.db");
  EXPECT_TRUE(test::comes_true(
      [&] { return ready().text("trouble").find("deleted") != std::string::npos; }));
  EXPECT_EQ(ready().status, 200);
  EXPECT_EQ(buy("ann", "1").status, 201) << "the balancer sends buyers here";
  EXPECT_EQ(test::ask(service_->health_port(), "GET", "/livez").status, 200);
  EXPECT_NE(test::ask(service_->health_port(), "GET", "/metrics").body.find("sluice_http_requests"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::server
