// What the shop asks of any buyer's orders.
#include <sqlite3/soci-sqlite3.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "sale/sql/soci.hpp"
#include "server/shop_fixture.hpp"
#include "sluice/payment_provider.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::server {
namespace {

class AllOrders : public ShopTest {
 protected:
  AllOrders() {
    const auto shop = make_shop_key("till", {Scope::orders});
    const auto console = make_shop_key("console", {Scope::operate, Scope::tools});
    shop_ = "Bearer " + shop.key;
    console_ = "Bearer " + console.key;
    lines_ = shop.line + "\n" + console.line + "\n";
  }
  /// What operators see, by their key.
  std::vector<std::string> operators_see(const std::string& question) const {
    const auto page =
        ask("GET", "/v1/operate/sales/tea/orders" + question, {{"Authorization", console_}});
    return items(page);
  }
  /// Each order of an answer, as its text has it.
  static std::vector<std::string> items(const Answer& page) {
    std::vector<std::string> all;
    std::string_view rest = page.body;
    for (auto at = rest.find("{\"id\":"); at != rest.npos; at = rest.find("{\"id\":")) {
      auto end = at;
      for (int depth = 0; end < rest.size(); ++end) {
        depth += rest[end] == '{';
        depth -= rest[end] == '}';
        if (depth == 0) break;
      }
      all.emplace_back(rest.substr(at, end + 1 - at));
      rest.remove_prefix(end);
    }
    return all;
  }
  void begin_with_keys(SaleDefinition sale) {
    const auto path = folder_ / "shop_keys";
    std::ofstream{path} << lines_;
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    auto how = options();
    how.shop.worker.claim_after = 60ms;
    how.shop_keys = ShopKeys::load(path.string());
    begin({std::move(sale)}, std::move(how));
  }
  Answer shop(std::string_view method, const std::string& path, Fields more = {},
              std::string_view body = {}) const {
    std::vector<std::pair<std::string_view, std::string_view>> fields{{"Authorization", shop_}};
    fields.insert(fields.end(), more.begin(), more.end());
    return ask(method, path, std::span{std::as_const(fields)}, body);
  }
  /// The path of an order that the database has.
  std::string bought(std::string_view buyer, std::string_view body = {}) const {
    const auto path = "/v1/sales/tea/orders/" + buy(buyer, "k", body).text("id");
    EXPECT_TRUE(test::comes_true([&] { return shop("GET", path).is_recorded(); }));
    return path;
  }
  void pay(const std::string& path) const {
    const auto shown = shop("GET", path);
    const auto all = shown.json();
    const auto orders = open_order_store(options().shop.orders);
    const Payment payment{.provider = "acme",
                          .event = "evt_" + shown.text("number"),
                          .sale = "tea",
                          .order = shown.text("number"),
                          .amount = *all.find("due")->as_integer(),
                          .currency = "CNY"};
    EXPECT_EQ(service_->shop().find("tea")->sale().pay(*orders, payment).state,
              PaymentState::applied);
  }
  std::int64_t left() const {
    const auto status = ask("GET", "/v1/sales/tea").json();
    return *status.find("left")->as_integer();
  }

  std::string shop_;
  std::string console_;
  std::string lines_;
};

TEST_F(AllOrders, AnyOrderIsShownAndCancelled) {
  begin_with_keys(paid_tea(9));
  const auto path = bought("ann", R"({"units":2})");
  const auto shown = shop("GET", path);
  EXPECT_EQ(shown.text("buyer"), "ann");
  EXPECT_EQ(shown.text("state"), "awaiting");
  EXPECT_EQ(shop("GET", "/v1/sales/tea/orders/" + shown.text("number")).status, 200);
  EXPECT_EQ(shop("GET", "/v1/sales/tea/orders/none").problem(), "no-order");
  EXPECT_EQ(ask("GET", path, {{"Sluice-Buyer", "ann"}}).text("buyer"), "") << "to the shop alone";
  EXPECT_EQ(shop("POST", path + "/cancel", {{"If-Match", "\"old\""}}).status, 412);
  const auto cancelled = shop("POST", path + "/cancel", {}, R"({"reason":"she phoned"})");
  EXPECT_EQ(cancelled.text("state"), "cancelled") << cancelled.body;
  EXPECT_EQ(cancelled.text("reason"), "she phoned");
  EXPECT_EQ(left(), 9);
}

/// In each state that an order may come to: all who show it, show the same.
TEST_F(AllOrders, SV10_EachAnswerHasTheSameJsonOfAnOrder) {
  begin_with_keys(paid_tea(90));
  const auto take_back = [&](const std::string& path, std::string_view body) {
    EXPECT_EQ(shop("POST", path + "/refund", {{"Idempotency-Key", "k"}}, body).status, 200);
  };
  const std::pair<const char*, std::function<void(const std::string&)>> ways[] = {
      {"awaiting", [](auto&) {}},
      {"awaiting, of which one went back", [&](auto& p) { take_back(p, R"({"units":1})"); }},
      {"cancelled", [&](auto& p) { shop("POST", p + "/cancel", {}, R"({"reason":"=1"})"); }},
      {"paid", [&](auto& p) { pay(p); }},
      {"paid, of which two went back",
       [&](auto& p) { pay(p), take_back(p, R"({"units":2,"reason":"broken"})"); }},
      {"refunding", [&](auto& p) { pay(p), take_back(p, R"({"reason":"all"})"); }}};
  std::vector<std::string> singly;
  for (const auto& [state, bring] : ways) {
    const auto path = bought(state, R"({"units":3})");
    bring(path);
    const auto shown = shop("GET", path);
    singly.push_back(shown.body);
    EXPECT_EQ(operators_see("?q=" + shown.text("number")), std::vector{shown.body}) << state;
    const auto own = ask("GET", path, {{"Sluice-Buyer", state}}).body;
    EXPECT_EQ(own.substr(0, own.size() - 1), shown.body.substr(0, own.size() - 1)) << state;
    EXPECT_EQ(shown.body.substr(own.size() - 1, 8), ",\"buyer\"") << "beside what the buyer sees";
  }
  EXPECT_EQ(items(shop("GET", "/v1/sales/tea/all-orders")), singly);
  EXPECT_EQ(operators_see(""), (std::vector<std::string>{singly.rbegin(), singly.rend()}))
      << "the newest first";
  EXPECT_EQ(operators_see("?q=cancelled"), std::vector{singly[2]});
}

TEST_F(AllOrders, SV13_NothingIsDueOfAnOrderThatEnded) {
  begin_with_keys(paid_tea(90));
  const auto due = [&](const std::string& path, std::string_view buyer) {
    const auto own = ask("GET", path, {{"Sluice-Buyer", buyer}});
    EXPECT_EQ(*own.json().find("due")->as_integer(),
              *shop("GET", path).json().find("due")->as_integer());
    return *own.json().find("due")->as_integer();
  };
  const auto cancelled = bought("ann", R"({"units":2})");
  EXPECT_EQ(due(cancelled, "ann"), 1000);
  shop("POST", cancelled + "/cancel");
  EXPECT_EQ(due(cancelled, "ann"), 0);
  const auto refunded = bought("bob", R"({"units":2})");
  pay(refunded);
  EXPECT_EQ(shop("POST", refunded + "/refund", {{"Idempotency-Key", "k"}}, "{}").status, 200);
  EXPECT_EQ(due(refunded, "bob"), 0);
}

/// The database is written to by somebody else for a while, and a shop looks for what its buyers
/// were told.
TEST_F(AllOrders, SV11_AnOrderOnItsWayIsShownToTheShop) {
  begin_with_keys(paid_tea(90));
  bought("ann");
  soci::session somebody{soci::sqlite3, "db=" + (folder_ / "orders.db").string()};
  somebody << "PRAGMA busy_timeout = 10000";
  somebody << "BEGIN IMMEDIATE";
  std::vector<Answer> told;
  for (int i = 0; i < 30; ++i) told.push_back(buy(fmt::format("b{}", i), "k"));
  for (const auto& order : told)
    for (const auto& word : {order.text("id"), order.text("number")}) {
      const auto shown = shop("GET", "/v1/sales/tea/orders/" + word);
      EXPECT_EQ(shown.status, 200) << shown.body;
      EXPECT_EQ(shown.text("number"), order.text("number"));
      EXPECT_FALSE(*shown.json().find("recorded")->as_bool());
      EXPECT_EQ(shown.text("buyer").substr(0, 1), "b");
    }
  EXPECT_EQ(shop("GET", "/v1/sales/tea/orders/none").problem(), "no-order");
  const auto path = "/v1/sales/tea/orders/" + told[0].text("id");
  EXPECT_EQ(shop("POST", path + "/refund", {{"Idempotency-Key", "k"}}, "{}").problem(), "busy");
  somebody << "ROLLBACK";
  EXPECT_TRUE(
      test::comes_true([&] { return *shop("GET", path).json().find("recorded")->as_bool(); }));
}

TEST_F(AllOrders, OtherKeysAreRefused) {
  begin_with_keys(paid_tea(9));
  const auto path = bought("ann");
  for (const auto& [method, what] : {std::pair{"GET", path},
                                     {"POST", path + "/cancel"},
                                     {"POST", path + "/refund"},
                                     {"GET", std::string{"/v1/sales/tea/all-orders"}}}) {
    const auto refused = [&](Fields fields) { return ask(method, what, fields); };
    EXPECT_EQ(refused({{"Authorization", console_}, {"Idempotency-Key", "k"}}).problem(),
              "not-allowed")
        << what;
    EXPECT_EQ(refused({{"Authorization", shop_ + "x"}, {"Idempotency-Key", "k"}}).problem(),
              "unknown-key")
        << what;
    EXPECT_EQ(refused({{"Authorization", shop_}, {"Authorization", console_}}).status, 401) << what;
  }
  EXPECT_EQ(ask("GET", "/v1/sales/tea/all-orders", {{"Sluice-Buyer", "ann"}}).problem(),
            "unknown-key")
      << "a buyer";
  EXPECT_EQ(
      ask("POST", path + "/refund", {{"Sluice-Buyer", "ann"}, {"Idempotency-Key", "k"}}).problem(),
      "unknown-key");
  EXPECT_EQ(shop("GET", path).text("state"), "awaiting") << "nothing was changed";
}

TEST_F(AllOrders, V14_TwoOfFiveAreTakenBackOnceForEachKey) {
  begin_with_keys(paid_tea(9));
  const auto path = bought("ann", R"({"units":5})");
  pay(path);
  const auto refund = [&](std::string_view key, std::string_view body, Fields more = {}) {
    std::vector<std::pair<std::string_view, std::string_view>> fields{{"Authorization", shop_},
                                                                      {"Idempotency-Key", key}};
    fields.insert(fields.end(), more.begin(), more.end());
    return test::ask(service_->port(), "POST", path + "/refund", fields, body);
  };
  const auto tag = [&] {
    const auto head = shop("GET", path).head;
    const auto at = head.find("ETag: ") + 6;
    return head.substr(at, head.find("\r\n", at) - at);
  };
  const auto before = tag();
  for (int i = 0; i < 3; ++i) {
    // Also with the tag of before, which a client that repeats a request sends again.
    const auto answer = refund("k1", R"({"units":2,"reason":"broken"})", {{"If-Match", before}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto json = answer.json();
    EXPECT_EQ(*json.find("returned")->as_integer(), 2);
    EXPECT_EQ(*json.find("taken_back")->find("refund")->as_integer(), 1000);
    ASSERT_EQ(json.find("refunds")->as_array()->size(), 1U);
    EXPECT_EQ(*json.find("refunds")->as_array()->front().find("state")->as_text(), "asked");
  }
  EXPECT_EQ(left(), 6);
  EXPECT_EQ(refund("k1", R"({"units":1})").problem(), "other-refund");
  EXPECT_EQ(refund("k2", R"({"units":1})", {{"If-Match", before}}).status, 412);
  EXPECT_EQ(refund("k2", R"({"units":4})").problem(), "fewer-units");
  EXPECT_EQ(refund("", "{}").problem(), "no-idempotency-key");
  EXPECT_EQ(refund("k2", R"({"unit":1})").problem(), "bad-body");
  EXPECT_EQ(refund("k2", R"({"units":0})").problem(), "bad-body");
  EXPECT_EQ(refund("k2", R"({"units":-1})").problem(), "bad-body");
  EXPECT_EQ(refund("k2", R"([1])").problem(), "bad-body");
  EXPECT_EQ(left(), 6) << "nothing of that did anything";
  const auto all = refund("k3", "");
  EXPECT_EQ(all.text("state"), "refunding") << all.body;
  EXPECT_EQ(left(), 9);
  EXPECT_EQ(refund("k3", "").status, 200);
  EXPECT_EQ(refund("k4", "").problem(), "order-ended");
  EXPECT_EQ(shop("POST", path + "/cancel").problem(), "order-ended");
  EXPECT_EQ(shop("POST", "/v1/sales/tea/orders/17/refund", {{"Idempotency-Key", "k"}}).problem(),
            "no-order");
  EXPECT_EQ(shop("POST", "/v1/sales/none/orders/17/refund", {{"Idempotency-Key", "k"}}).problem(),
            "no-sale");
}

TEST_F(AllOrders, V14_ManyAtOnceWithOneKeyTakeBackOnce) {
  begin_with_keys(paid_tea(9));
  const auto path = bought("ann", R"({"units":5})");
  pay(path);
  std::atomic<int> done{0};
  std::atomic<int> other{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        const auto answer =
            shop("POST", path + "/refund", {{"Idempotency-Key", "one"}}, R"({"units":2})");
        (answer.status == 200 ? done : other) += 1;
        EXPECT_TRUE(answer.status == 200 || answer.problem() == "too-many-requests") << answer.body;
      });
  }
  EXPECT_GE(done, 1);
  EXPECT_EQ(left(), 6);
}

// A late payment of an order whose units are gone: one refund.
TEST_F(AllOrders, V08_ALatePaymentWithNothingLeftGoesBackOnce) {
  begin_with_keys(paid_tea(1, {.window = 1h, .grace = 0us, .price = 500, .currency = "CNY"}));
  const auto path = bought("ann");
  {
    soci::session an_hour_later{soci::sqlite3, "db=" + (folder_ / "orders.db").string()};
    an_hour_later << "PRAGMA busy_timeout = 10000";
    an_hour_later << "UPDATE sale_orders SET pay_by = 1 WHERE buyer = 'ann'";
  }
  EXPECT_TRUE(test::comes_true([&] { return shop("GET", path).text("state") == "expired"; }));
  EXPECT_TRUE(test::comes_true([&] { return buy("bob", "k").status == 201; }));
  const auto orders = open_order_store(options().shop.orders);
  const auto number = shop("GET", path).text("number");
  const Payment payment{.provider = "acme",
                        .event = "late",
                        .sale = "tea",
                        .order = number,
                        .amount = 500,
                        .currency = "CNY"};
  for (int i = 0; i < 3; ++i) service_->shop().find("tea")->sale().pay(*orders, payment);
  const auto shown = shop("GET", path).json();
  EXPECT_EQ(*shown.find("state")->as_text(), "refunding");
  ASSERT_EQ(shown.find("refunds")->as_array()->size(), 1U);
  EXPECT_EQ(*shown.find("refunds")->as_array()->front().find("amount")->as_integer(), 500);
}

TEST_F(AllOrders, PagesHaveEachOrderOnceWhileOrdersComeIn) {
  begin_with_keys(paid_tea(2000));
  constexpr int count = 600;
  std::set<std::string> told;
  std::mutex mutex;
  std::vector<std::jthread> buyers;
  for (int thread = 0; thread < 3; ++thread)
    buyers.emplace_back([&, thread] {
      for (int i = 0; i < count / 3; ++i) {
        const auto id = buy(fmt::format("b{}-{}", thread, i), "k").text("id");
        const std::lock_guard lock{mutex};
        told.insert(id);
      }
    });
  // One reader who goes on from where he was, while orders come in by batches.
  std::vector<std::string> read;
  std::string after;
  EXPECT_TRUE(test::comes_true([&] {
    const auto page = shop("GET", "/v1/sales/tea/all-orders?most=7&after=" + after);
    EXPECT_EQ(page.status, 200) << page.body;
    const auto json = page.json();
    const auto& orders = *json.find("orders")->as_array();
    EXPECT_LE(orders.size(), 7U);
    for (const auto& order : orders) read.push_back(*order.find("id")->as_text());
    after = page.text("after");
    return read.size() >= count;
  }));
  buyers.clear();
  EXPECT_EQ(read.size(), told.size());
  EXPECT_EQ((std::set<std::string>{read.begin(), read.end()}), told);
}

TEST_F(AllOrders, PagesAreLinkedAndOfOneState) {
  begin_with_keys(paid_tea(50));
  std::string path;
  for (int i = 0; i < 5; ++i) path = bought(fmt::format("b{}", i));
  pay(path);
  const auto first = shop("GET", "/v1/sales/tea/all-orders?most=2");
  EXPECT_EQ(first.json().find("orders")->as_array()->size(), 2U);
  EXPECT_TRUE(first.has("Link: </v1/sales/tea/all-orders?most=2&after=")) << first.head;
  const auto all = shop("GET", "/v1/sales/tea/all-orders?most=500");
  EXPECT_EQ(all.json().find("orders")->as_array()->size(), 5U);
  EXPECT_FALSE(all.has("Link:"));
  EXPECT_EQ(*all.json().find("orders")->as_array()->front().find("buyer")->as_text(), "b0");
  const auto paid = shop("GET", "/v1/sales/tea/all-orders?state=paid&most=1");
  EXPECT_EQ(paid.json().find("orders")->as_array()->size(), 1U);
  EXPECT_EQ(shop("GET", "/v1/sales/tea/all-orders?state=expired")
                .json()
                .find("orders")
                ->as_array()
                ->size(),
            0U);
  for (const char* const query : {"state=bought", "most=0", "most=501", "most=x", "after=x",
                                  "after=-2", "most=-1", "after=99999999999999999999"})
    EXPECT_EQ(shop("GET", std::string{"/v1/sales/tea/all-orders?"} + query).problem(),
              "bad-parameter")
        << query;
  EXPECT_EQ(shop("GET", "/v1/sales/none/all-orders").problem(), "no-sale");
}

TEST_F(AllOrders, WithoutKeysThereAreNoSuchCalls) {
  begin({paid_tea(9)});
  EXPECT_EQ(ask("GET", "/v1/sales/tea/all-orders", {{"Authorization", shop_}}).status, 404);
  EXPECT_EQ(ask("GET", "/v1/sales/tea/orders/1", {{"Authorization", shop_}}).problem(),
            "unknown-key");
}

}  // namespace
}  // namespace sluice::server
