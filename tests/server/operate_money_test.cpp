/// What operators settle, send again and look up; and what a key that only reads may.
#include <array>
#include <map>
#include <set>

#include "http/text.hpp"
#include "server/operate_fixture.hpp"
#include "server/receiver.hpp"
#include "sluice/payment_provider.hpp"
#include "support/collected_log.hpp"

namespace sluice::server {
namespace {

const HmacPayments bank{"acme", WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}};

const JsonValue::Array& rows_in(const JsonValue& answer, const char* name) {
  return *answer.find(name)->as_array();
}
std::string word_in(const JsonValue& value, const char* name) {
  const auto* const found = value.find(name);
  return found && found->as_text() ? *found->as_text() : std::string{};
}

class OperateMoney : public OperateTest {
 protected:
  void begin_paid(const std::string& refunds_at = {}, const std::string& messages_at = {}) {
    auto how = with_keys();
    const auto provider = std::make_shared<HmacPayments>(bank);
    how.shop_keys =
        ShopKeys{{key_of(ann_), key_of(till_), key_of(eye_), key_of(tools_), key_of(bob_)}};
    how.shop.worker.claim_after = 60ms;
    how.providers = {provider};
    how.messenger.every = 5ms;
    how.messenger.http.allows_private = true;
    if (!refunds_at.empty()) how.messenger.refunds = {{provider, refunds_at}};
    if (!messages_at.empty())
      how.messenger.messages =
          MessageTarget{messages_at, WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}};
    begin({paid_tea(10)}, std::move(how));
  }
  /// As the provider tells it.
  void pay(const std::string& event, const std::string& sale, const std::string& number,
           std::int64_t amount) const {
    const auto body = HmacPayments::body_of({.provider = "acme",
                                             .event = event,
                                             .sale = sale,
                                             .order = number,
                                             .amount = amount,
                                             .currency = "CNY"});
    const auto head = bank.sign(body, "m_" + event, system_clock().wall());
    EXPECT_EQ(ask("POST", "/v1/payments/acme",
                  {{"webhook-id", head.id},
                   {"webhook-timestamp", head.timestamp},
                   {"webhook-signature", head.signature}},
                  body)
                  .status,
              204);
  }
  /// The number of an order that the database has.
  std::string bought(std::string_view buyer) const {
    const auto number = buy(buyer, "k", R"({"units":2})").text("number");
    EXPECT_TRUE(test::comes_true([&] {
      return get("/v1/operate/sales/tea/orders/" + number).json().find("recorded") &&
             *get("/v1/operate/sales/tea/orders/" + number).json().find("recorded")->as_bool();
    }));
    return number;
  }
  JsonValue of_tea(std::string_view path) const {
    const auto answer = get(fmt::format("/v1/operate/sales/tea{}", path));
    EXPECT_EQ(answer.status, 200) << path << answer.body;
    return answer.json();
  }
  std::vector<std::string> events_in(std::string_view path) const {
    std::vector<std::string> events;
    for (const auto& row : rows_in(get(path).json(), "payments"))
      events.push_back(word_in(row, "event"));
    return events;
  }
  Answer settle(const std::string& event, const char* verb,
                std::string_view body = R"({"confirm":"acme",)"
                                        R"("reason":"a call"})") const {
    return post(fmt::format("/v1/operate/payments/acme/{}/{}", http::escape(event), verb), body);
  }
  Answer refund(std::string_view number, std::string_view key, std::string_view body) const {
    return ask("POST", fmt::format("/v1/operate/sales/tea/orders/{}/refund", number),
               {{"Authorization", "Bearer " + ann_.key}, {"Idempotency-Key", key}}, body);
  }
  std::string metrics() const { return test::ask(service_->health_port(), "GET", "/metrics").body; }

  const MadeShopKey eye_ = make_shop_key("eye", {Scope::read});
  const MadeShopKey tools_ = make_shop_key("job", {Scope::tools});
  int key_ = 0;
};

using Events = std::vector<std::string>;

/// Each payment that paid nothing has a line, a view and a verb, also one that belongs nowhere.
TEST_F(OperateMoney, SV12_APaymentThatPaidNothingIsSeenAndSettled) {
  test::CollectedLog log;
  test::Receiver provider;
  begin_paid(provider.url());
  const auto number = bought("ann");
  pay("too little", "tea", number, 400);
  pay("no order", "tea", "TEA1", 500);
  pay("no/sale?", "cake", "CAKE1", 500);
  for (const auto* event : {"too little", "no order", "no/sale?"})
    EXPECT_EQ(log.count(fmt::format("payment '{}' of acme", event)), 1U) << log.text();
  EXPECT_EQ(events_in("/v1/operate/payments"), Events{"too little"});
  EXPECT_EQ(events_in("/v1/operate/payments?state=waiting"), (Events{"no order", "no/sale?"}));
  EXPECT_EQ(events_in("/v1/operate/sales/tea/payments?state=waiting"), Events{"no order"});
  const auto seen = state_where([](const JsonValue& sale) {
    return integer(sale, {"payments", "flagged"}) == 1;
  });
  EXPECT_EQ(integer(seen, {"payments_of_no_sale"}), 1);

  for (const auto* body : {R"({"reason":"x"})", R"({"confirm":"tea","reason":"x"})"})
    EXPECT_EQ(settle("too little", "settle", body).problem(), "not-confirmed") << body;
  for (const auto* body : {R"({"confirm":"acme"})", R"({"confirm":"acme","reason":""})"})
    EXPECT_EQ(settle("too little", "settle", body).problem(), "bad-body") << body;
  EXPECT_EQ(settle("unheard", "settle").problem(), "no-payment");
  const auto settled = settle("too little", "settle");
  EXPECT_EQ(settled.text("state"), "settled") << settled.body;
  EXPECT_TRUE(settled.text("note").ends_with("settled by ann: a call"));
  EXPECT_EQ(settle("too little", "settle").status, 200) << "a repeat";
  EXPECT_EQ(settle("too little", "refund").problem(), "payment-is-settled");
  for (const auto* event : {"no order", "no/sale?"}) EXPECT_EQ(settle(event, "refund").status, 200);
  EXPECT_TRUE(test::comes_true(
      [&] { return events_in("/v1/operate/payments?state=refunded").size() == 2; }));
  EXPECT_EQ(provider.count(), 2U);
  const auto seen_again = state_where([](const JsonValue& sale) {
    return integer(sale, {"payments", "flagged"}) == 0;
  });
  EXPECT_EQ(integer(seen_again, {"payments_of_no_sale"}), 0);
  const auto audit = post("/v1/operate/sales/tea/audit").json();
  EXPECT_TRUE(*audit.find("sound")->as_bool());
  const auto journal = get("/v1/operate/journal").json();
  EXPECT_EQ(word_in(rows_in(journal, "entries").back(), "action"), "settle_payment");
}

TEST_F(OperateMoney, SV12_AFailingRefundSaysWhyAndIsSentAgain) {
  test::Receiver provider{[](const test::Receiver::Got&) { return 500; }};
  begin_paid(provider.url());
  const auto number = bought("ann");
  pay("right", "tea", number, 1000);
  pay("twice", "tea", number, 1000);
  EXPECT_EQ(refund(number, "1", R"({"confirm":"tea","units":1,"reason":"broken"})").status, 200);
  EXPECT_EQ(settle("twice", "refund").status, 200);
  const auto failing = [&] { return rows_in(of_tea("/refunds"), "refunds"); };
  ASSERT_TRUE(test::comes_true([&] { return failing().size() == 1 && provider.count() >= 2; }));
  EXPECT_NE(word_in(failing().front(), "note").find("answered 500"), std::string::npos);
  EXPECT_LT(word_in(failing().front(), "since"), word_in(failing().front(), "next_at"));
  EXPECT_EQ(integer(failing().front(), {"failed"}), 1);
  state_where([](const JsonValue& sale) { return integer(sale, {"refunds_failing"}) == 2; });
  EXPECT_TRUE(test::comes_true([&] {
    return metrics().find(R"(sluice_service_needs{sale="tea",what="refunds_failing"} 2)") !=
           std::string::npos;
  }));
  EXPECT_EQ(refund(number, "2", R"({"confirm":"tea","reason":"ill"})").status, 200);
  pay("in vain", "tea", number, 1000);
  EXPECT_EQ(settle("in vain", "refund").status, 200);
  ASSERT_TRUE(test::comes_true([&] { return failing().size() == 2 && provider.count() >= 4; }));
  const auto by_hand =
      fmt::format("/v1/operate/sales/tea/refunds/{}/settle", word_in(failing().back(), "id"));
  EXPECT_EQ(post(by_hand, R"({"confirm":"tea","reason":"by a transfer"})").status, 204);
  EXPECT_EQ(post(by_hand, R"({"confirm":"tea","reason":"by a transfer"})").problem(), "no-refund");
  EXPECT_TRUE(test::comes_true([&] { return settle("in vain", "settle").status == 200; }));
  provider.answers([](const test::Receiver::Got&) { return 200; });
  const auto path =
      fmt::format("/v1/operate/sales/tea/refunds/{}/resend", word_in(failing().front(), "id"));
  EXPECT_EQ(post(path).status, 204);
  EXPECT_EQ(settle("twice", "refund").status, 200) << "a repeated wish sends it at once";
  EXPECT_TRUE(test::comes_true([&] {
    return rows_in(of_tea("/refunds?state=done"), "refunds").size() == 2 &&
           events_in("/v1/operate/payments?state=refunded") == Events{"twice"};
  }));
  EXPECT_EQ(post(path).problem(), "no-refund");
  std::map<std::string, std::string> notes;
  const auto done = of_tea("/refunds?state=done");
  for (const auto& row : rows_in(done, "refunds"))
    notes[word_in(row, "state")] = word_in(row, "note");
  EXPECT_EQ(notes["settled"], "by ann: by a transfer");
  const auto money = get("/v1/operate/money").json();
  const std::pair<const char*, int> sums[] = {
      {"paid", 3000}, {"refunds", 2}, {"given_back", 1500}, {"settled", 1500}, {"net", 1500}};
  for (const auto& [name, sum] : sums)
    EXPECT_EQ(integer(rows_in(money, "money").front(), {name}), sum) << name;
  std::set<std::string> keys;
  for (const auto& got : provider.got()) keys.insert(got.key);
  EXPECT_EQ(keys.size(), 4U) << "each under one key";
  EXPECT_TRUE(failing().empty());
  EXPECT_EQ(word_in(of_tea("/orders/" + number), "state"), "refunded");
  EXPECT_TRUE(*post("/v1/operate/sales/tea/audit").json().find("sound")->as_bool());
}

/// The database comes back from a backup of before; the store knows.
TEST_F(OperateMoney, SV18_WhatAPersonSettledIsNotAskedForInARestoredDatabase) {
  test::Receiver provider{[](const test::Receiver::Got&) { return 500; }};
  begin_paid(provider.url());
  const auto number = bought("ann");
  for (const auto* event : {"right", "twice"}) pay(event, "tea", number, 1000);
  EXPECT_EQ(refund(number, "1", R"({"confirm":"tea","units":1,"reason":"broken"})").status, 200);
  EXPECT_EQ(settle("twice", "refund").status, 200);
  state_where([](const JsonValue& sale) { return integer(sale, {"refunds_failing"}) == 2; });
  const auto failing = of_tea("/refunds");
  const auto path =
      "/v1/operate/sales/tea/refunds/" + word_in(rows_in(failing, "refunds").front(), "id");
  const auto database = folder_ / "orders.db";
  service_.reset();
  std::filesystem::copy(database, folder_ / "backup.db");
  begin_paid(provider.url());
  EXPECT_EQ(post(path + "/settle", R"({"confirm":"tea","reason":"cash"})").status, 204);
  EXPECT_EQ(settle("twice", "settle").status, 200);
  service_.reset();
  for (const auto* const end : {"-wal", "-shm"}) std::filesystem::remove(database.string() + end);
  std::filesystem::rename(folder_ / "backup.db", database);

  const auto asked = provider.count();
  begin_paid(provider.url());
  EXPECT_TRUE(test::comes_true([&] { return post(path + "/resend").status == 204; })) << "at once";
  EXPECT_EQ(settle("twice", "refund").status, 200);
  EXPECT_TRUE(test::comes_true([&] {
    const auto done = of_tea("/refunds?state=done");
    return events_in("/v1/operate/payments?state=settled") == Events{"twice"} &&
           rows_in(done, "refunds").size() == 1 &&
           word_in(rows_in(done, "refunds").front(), "note") == "by ann: cash";
  }));
  EXPECT_EQ(provider.count(), asked);
}

TEST_F(OperateMoney, SV12_ATargetThatFailsIsShownAndAMessageSentAgain) {
  test::Receiver shop{[](const test::Receiver::Got&) { return 503; }};
  begin_paid({}, shop.url());
  const auto number = bought("ann");
  pay("right", "tea", number, 1000);
  const auto seen = state_where([](const JsonValue& sale) {
    return integer(sale, {"messages", "failing"}) == 1;
  });
  const auto& messages = *rows_in(seen, "sales").front().find("messages");
  EXPECT_NE(word_in(messages, "last_failure").find("answered 503"), std::string::npos);
  EXPECT_EQ(word_in(messages, "failing_since").size(), 24U);
  const auto failing = of_tea("/messages?state=failing");
  ASSERT_EQ(rows_in(failing, "messages").size(), 1U);
  const auto& message = rows_in(failing, "messages").front();
  EXPECT_NE(word_in(message, "note").find("answered 503"), std::string::npos);
  EXPECT_LT(word_in(message, "at"), word_in(message, "next_at"));
  shop.answers([](const test::Receiver::Got&) { return 204; });
  const auto path = fmt::format("/v1/operate/sales/tea/messages/{}/resend", word_in(message, "id"));
  EXPECT_EQ(integer(post(path).json(), {"replayed"}), 1);
  EXPECT_TRUE(test::comes_true(
      [&] { return rows_in(of_tea("/messages?state=done"), "messages").size() == 1; }));
  EXPECT_EQ(post(path).problem(), "no-message");
  for (const auto* id : {"x", "1", "1:x", "x:1", ""})
    EXPECT_EQ(post(fmt::format("/v1/operate/sales/tea/messages/{}/resend", id)).status, 404) << id;
}

/// A receiver's 410 stops the messages of a sale: everybody is told, and each verb begins again.
TEST_F(OperateMoney, SV12_AReceiverThatWantsNoMoreIsShownAndBegunAgain) {
  test::Receiver shop{[](const test::Receiver::Got&) { return 410; }};
  begin_paid({}, shop.url());
  std::size_t sent = 0;
  for (const auto* verb : {"/messages/{}/resend", "/messages/replay"}) {
    for (const auto* buyer : {"ann", "bob"})
      pay(fmt::format("{} {}", buyer, verb), "tea", bought(fmt::format("{} {}", buyer, verb)),
          1000);
    const auto seen = state_where([](const JsonValue& sale) {
      return integer(sale, {"messages", "stopped"}) == 2;
    });
    const auto& messages = *rows_in(seen, "sales").front().find("messages");
    EXPECT_NE(word_in(messages, "last_failure").find("answered 410"), std::string::npos);
    EXPECT_EQ(word_in(messages, "stopped_since").size(), 24U);
    EXPECT_EQ(integer(messages, {"failing"}), 0);
    EXPECT_TRUE(test::comes_true([&] {
      return metrics().contains(R"(sluice_service_needs{sale="tea",what="messages_stopped"} 2)");
    }));
    const auto due = of_tea("/messages?state=due");
    ASSERT_EQ(rows_in(due, "messages").size(), 2U);
    for (const auto& row : rows_in(due, "messages")) {
      EXPECT_EQ(word_in(row, "state"), "stopped");
      EXPECT_TRUE(row.find("next_at")->is_null());
      EXPECT_NE(word_in(row, "note").find("send it again"), std::string::npos);
    }
    shop.answers([](const test::Receiver::Got&) { return 204; });
    const auto id = word_in(rows_in(due, "messages").front(), "id");
    const auto path = std::string{"/v1/operate/sales/tea"} + fmt::format(fmt::runtime(verb), id);
    EXPECT_EQ(integer(post(path).json(), {"replayed"}), 2) << path;
    const auto journal = get("/v1/operate/journal").json();
    const auto& last = rows_in(journal, "entries").front();
    if (sent == 0) EXPECT_EQ(word_in(last, "order").substr(0, 3), "TEA");
    if (sent == 0) EXPECT_EQ(integer(last, {"amount"}), 1000);
    sent += 2;
    EXPECT_TRUE(test::comes_true(
        [&] { return rows_in(of_tea("/messages?state=done"), "messages").size() == sent; }));
    state_where([](const JsonValue& sale) { return integer(sale, {"messages", "stopped"}) == 0; });
    shop.answers([](const test::Receiver::Got&) { return 410; });
  }
}

TEST_F(OperateMoney, SV20_AnOrderIsShownWithAllThatBelongsToIt) {
  begin_paid();
  const auto number = bought("ann");
  pay("right", "tea", number, 1000);
  pay("wrong", "tea", number, 7);
  EXPECT_EQ(refund(number, "1", R"({"confirm":"tea","units":1,"reason":"broken"})").status, 200);
  const auto order = of_tea("/orders/" + number);
  EXPECT_EQ(word_in(order, "buyer"), "ann");
  EXPECT_EQ(integer(order, {"returned"}), 1);
  ASSERT_EQ(rows_in(order, "payments").size(), 2U);
  EXPECT_EQ(word_in(rows_in(order, "payments").back(), "state"), "flagged");
  EXPECT_EQ(rows_in(order, "refunds").size(), 1U);
  ASSERT_EQ(rows_in(order, "messages").size(), 2U);
  EXPECT_EQ(word_in(rows_in(order, "messages").front(), "type"), "order.units_cancelled");
  Events history;
  for (const auto& row : rows_in(order, "history")) history.push_back(word_in(row, "event"));
  EXPECT_EQ(history.size(), 5U);
  EXPECT_EQ(history.back(), "order.issued");
  EXPECT_EQ(of_tea("/orders/" + word_in(order, "id")).find("number")->as_text()->compare(number),
            0);
  EXPECT_EQ(get("/v1/operate/sales/tea/orders/nothing").problem(), "no-order");
}

TEST_F(OperateMoney, SV20_UnitsAreTakenBackOnceForEachKey) {
  begin_paid();
  const auto number = bought("ann");
  const auto all = R"({"confirm":"tea","reason":"ill"})";
  EXPECT_EQ(refund(number, "1", R"({"reason":"ill"})").problem(), "not-confirmed");
  EXPECT_EQ(refund(number, "1", R"({"confirm":"tea"})").problem(), "bad-body") << "no reason";
  EXPECT_EQ(refund(number, "", all).problem(), "no-idempotency-key");
  EXPECT_EQ(refund(number, "1", R"({"confirm":"tea","units":3,"reason":"ill"})").problem(),
            "fewer-units");
  for (int i = 0; i < 2; ++i) {
    const auto back = refund(number, "1", R"({"confirm":"tea","units":1,"reason":"ill"})");
    EXPECT_EQ(integer(back.json(), {"taken_back", "units"}), 1) << back.body;
    EXPECT_EQ(integer(back.json(), {"returned"}), 1);
  }
  EXPECT_EQ(refund(number, "2", all).text("state"), "cancelled");
  EXPECT_EQ(refund(number, "3", all).problem(), "order-ended");
  EXPECT_EQ(refund("none", "3", all).problem(), "no-order");
}

/// Each act is of what the operator saw: a second one came before.
TEST_F(OperateMoney, NU12_WhatHasChangedSinceItWasSeenIsNotActedOn) {
  test::Receiver provider{[](const test::Receiver::Got&) { return 500; }};
  begin_paid(provider.url());
  const auto number = bought("ann");
  const auto tag = [&] {
    const auto head = get("/v1/operate/sales/tea/orders/" + number).head;
    const auto at = head.find("ETag: ") + 6;
    return head.substr(at, head.find("\r\n", at) - at);
  };
  const auto act = [&](std::string_view path, std::string_view seen, std::string_view body) {
    return ask(
        "POST", fmt::format("/v1/operate/{}", path),
        {{"Authorization", "Bearer " + bob_.key}, {"Idempotency-Key", "bob's"}, {"If-Match", seen}},
        body);
  };
  const auto take_back = [&](std::string_view seen) {
    return act(fmt::format("sales/tea/orders/{}/refund", number), seen,
               R"({"confirm":"tea","units":1,"reason":"ill"})");
  };
  const auto awaiting = tag();
  pay("right", "tea", number, 1000);
  const auto refused = take_back(awaiting);
  EXPECT_EQ(refused.problem(), "other-version");
  EXPECT_EQ(word_in(*refused.json().find("order"), "state"), "paid");
  const auto paid = tag();
  EXPECT_EQ(refund(number, "ann's", R"({"confirm":"tea","units":1,"reason":"a"})").status, 200);
  EXPECT_EQ(take_back(paid).problem(), "other-version");
  const auto now = tag();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(take_back(now).status, 200) << "also a repeat";

  const auto reason = R"({"confirm":"acme","reason":"a call"})";
  pay("twice", "tea", number, 1000);
  EXPECT_EQ(settle("twice", "refund").status, 200);
  const auto in_vain = [&] {
    const auto order = of_tea("/orders/" + number);
    return order.find("payments")->as_array()->back().find("failure") != nullptr;
  };
  ASSERT_TRUE(test::comes_true(in_vain));
  const auto changed = act("payments/acme/twice/settle", R"("flagged")", reason);
  EXPECT_EQ(changed.problem(), "other-version") << "it could be settled: but it is going back";
  EXPECT_EQ(word_in(*changed.json().find("payment"), "state"), "refunding");
  for (const auto* seen : {R"("refunding")", "*"})
    EXPECT_EQ(act("payments/acme/twice/settle", seen, reason).status, 200) << seen;

  const auto asked = of_tea("/refunds?state=asked");
  const auto by_hand =
      fmt::format("sales/tea/refunds/{}/settle", word_in(rows_in(asked, "refunds").front(), "id"));
  const auto why = R"({"confirm":"tea","reason":"a call"})";
  EXPECT_EQ(act(by_hand, R"("done")", why).problem(), "other-version");
  EXPECT_EQ(act(by_hand, R"("asked")", why).status, 204);
  EXPECT_EQ(act(by_hand, R"("asked")", why).problem(), "other-version");
}

/// What is said of a payment that paid nothing, and in its order's history.
TEST_F(OperateMoney, SV20_APaymentSaysWhyItPaidNothing) {
  begin_paid();
  const auto number = bought("ann");
  pay("less", "tea", number, 999);
  pay("right", "tea", number, 1000);
  pay("late", "tea", number, 999);
  pay("twice", "tea", number, 1000);
  EXPECT_EQ(settle("twice", "settle").status, 200);
  const auto order = of_tea("/orders/" + number);
  std::map<std::string, std::string> notes;
  for (const auto& payment : rows_in(order, "payments"))
    notes.emplace(word_in(payment, "event"), word_in(payment, "note"));
  EXPECT_EQ(notes["less"], "9.99 CNY was paid, and 10.00 CNY is due");
  EXPECT_EQ(notes["late"], "the order is paid already");
  EXPECT_EQ(notes["twice"], "the order is paid already; settled by ann: a call");
  std::multiset<std::string> states;
  for (const auto& row : rows_in(order, "history"))
    if (word_in(row, "event") == "payment.received")
      states.insert(word_in(*row.find("data"), "state"));
  EXPECT_EQ(states, (std::multiset<std::string>{"applied", "flagged", "flagged", "settled"}));
}

TEST_F(OperateMoney, SV20_OrdersAreListedNewestFirstAndFiltered) {
  begin_paid();
  std::vector<std::string> numbers;
  for (const auto* buyer : {"ann", "bob", "cid", "dan"}) numbers.push_back(bought(buyer));
  pay("bob's", "tea", numbers[1], 1000);
  const auto listed = [&](std::string_view query) {
    Events found;
    for (const auto& row : rows_in(of_tea(query), "orders"))
      found.push_back(word_in(row, "number"));
    return found;
  };
  EXPECT_EQ(listed("/orders"), Events(numbers.rbegin(), numbers.rend()));
  EXPECT_EQ(listed("/orders?state=paid"), Events{numbers[1]});
  EXPECT_EQ(listed("/orders?q=cid&state=awaiting"), Events{numbers[2]});
  EXPECT_EQ(listed("/orders?q=cid&state=paid"), Events{});
  const auto first = of_tea("/orders?most=3");
  EXPECT_EQ(rows_in(first, "orders").size(), 3U);
  EXPECT_EQ(listed("/orders?most=3&after=" + word_in(first, "next")), Events{numbers[0]});
  EXPECT_TRUE(of_tea("/orders?most=4").find("next")->is_null());
  const auto upper = numbers[2];
  auto lower = upper;
  for (auto& c : lower) c = http::lower(c);
  EXPECT_EQ(listed("/orders?q=" + lower), Events{upper});
  EXPECT_EQ(listed("/orders?q=" + lower.substr(lower.size() - 4)), Events{upper}) << "its end";
  EXPECT_EQ(listed("/orders?q=B&state=paid"), Events{numbers[1]}) << "a part of a buyer's name";
  EXPECT_EQ(listed("/orders?q=a&most=1"), Events{numbers[3]}) << "dan, before ann";
  EXPECT_EQ(listed("/orders?q=e"), Events{});
  EXPECT_EQ(get("/v1/operate/sales/tea/orders/none").text("title"), "There is no such order");
  for (const auto* query : {"state=gone", "after=x"})
    EXPECT_EQ(get(fmt::format("/v1/operate/sales/tea/orders?{}", query)).problem(),
              "bad-parameter");
}

/// A day's end, as the provider's statement has it: parts that went back, payments sent back, an
/// order that was taken back unit by unit.
TEST_F(OperateMoney, SV20_MoneyIsTotalledByDayAndState) {
  test::Receiver provider;
  begin_paid(provider.url());
  std::map<std::string, std::string> numbers;
  for (const auto* buyer : {"ann", "bob", "cid", "dan"}) {
    numbers[buyer] = bought(buyer);
    if (buyer[0] < 'c') pay(buyer, "tea", numbers[buyer], 1000);
  }
  pay("wrong", "tea", numbers["cid"], 7);
  pay("of nobody", "cake", "CAKE1", 30);
  EXPECT_EQ(settle("wrong", "refund").status, 200);
  const auto one = R"({"confirm":"tea","units":1,"reason":"ill"})";
  for (const auto* who : {"ann", "dan", "dan"})
    EXPECT_EQ(refund(numbers[who], fmt::format("{}", ++key_), one).status, 200);
  ASSERT_TRUE(test::comes_true([&] {
    return rows_in(of_tea("/refunds?state=done"), "refunds").size() == 1 &&
           events_in("/v1/operate/payments?state=refunded").size() == 1;
  }));
  std::map<std::string, std::string> said;  // in the journal, of what it was done to
  const auto journal = get("/v1/operate/journal").json();
  for (const auto& entry : rows_in(journal, "entries"))
    said[word_in(entry, "action")] =
        fmt::format("{} {} {} {}", word_in(entry, "target"), word_in(entry, "order"),
                    integer(entry, {"amount"}), word_in(entry, "currency"));
  EXPECT_EQ(said["refund_payment"], "tea " + numbers["cid"] + " 7 CNY");
  EXPECT_EQ(said["take_back_units"], "tea " + numbers["ann"] + " 500 CNY");
  const auto totals = of_tea("/totals");
  EXPECT_EQ(word_in(totals, "currency"), "CNY");
  std::map<std::string, std::array<std::int64_t, 4>> states;
  for (const auto& row : rows_in(totals, "days"))
    states[word_in(row, "state")] = {integer(row, {"orders"}), integer(row, {"amount"}),
                                     integer(row, {"returned"}), integer(row, {"returned_amount"})};
  EXPECT_EQ(states,
            (std::map<std::string, std::array<std::int64_t, 4>>{{"paid", {2, 1500, 1, 500}},
                                                                {"awaiting", {1, 1000, 0, 0}},
                                                                {"cancelled", {1, 1000, 0, 0}}}));
  const auto moved = [&](std::string_view path) {
    std::array<std::int64_t, 5> sums{};
    for (const auto& row : rows_in(get(path).json(), "money")) {
      EXPECT_EQ(word_in(row, "provider") + word_in(row, "currency"), "acmeCNY");
      std::size_t i = 0;
      for (const auto* name : {"payments", "paid", "refunds", "given_back", "net"})
        sums.at(i++) += integer(row, {name});
    }
    return sums;
  };
  EXPECT_EQ(moved("/v1/operate/sales/tea/totals"),
            (std::array<std::int64_t, 5>{3, 2007, 2, 507, 1500}));
  EXPECT_EQ(moved("/v1/operate/money?offset=60"),
            (std::array<std::int64_t, 5>{4, 2037, 2, 507, 1530}));
  for (const auto* offset : {"480", "-720", "1439", "-1439"})
    EXPECT_FALSE(rows_in(of_tea(fmt::format("/totals?offset={}", offset)), "days").empty());
  for (const auto* offset : {"1440", "-1440", "x", "9223372036854775807"})
    for (const auto* path : {"/v1/operate/sales/tea/totals", "/v1/operate/money"})
      EXPECT_EQ(get(fmt::format("{}?offset={}", path, offset)).problem(), "bad-parameter");
}

/// All routes of operators, by each role: who only reads sees all of it, and changes nothing.
TEST_F(OperateMoney, SV20_WhoOnlyReadsSeesAllAndDoesNothing) {
  begin_paid();
  const auto login = ask("POST", "/console/login", {}, "key=" + eye_.key);
  ASSERT_EQ(login.status, 204);
  const auto at = login.head.find("Set-Cookie: ") + 12;
  const auto cookie = login.head.substr(at, login.head.find(';', at) - at);
  const std::map<std::string, std::string> values{{"{sale}", "tea"},
                                                  {"{order}", "1"},
                                                  {"{id}", "1-1"},
                                                  {"{provider}", "acme"},
                                                  {"{event}", "e"}};
  const auto document =
      JsonValue::parse(ask("GET", "/openapi.json").body, {.bytes = 1 << 20, .depth = 32}).value();
  const auto status = [&](std::string_view method, std::string_view path, std::string_view who) {
    http::RawClient client{service_->port()};
    client.send(fmt::format("{} {} HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n{}\r\n\r\n",
                            method, path, who));
    return std::stoi(client.until("\r\n\r\n").substr(9, 3));
  };
  int verbs = 0;
  int views = 0;
  for (const auto& [pattern, operations] : *document.find("paths")->as_object()) {
    if (!pattern.starts_with("/v1/operate")) continue;
    auto path = pattern;
    for (const auto& [name, value] : values)
      for (auto in = path.find(name); in != path.npos; in = path.find(name))
        path.replace(in, name.size(), value);
    for (const auto& [method, operation] : *operations.as_object()) {
      const bool is_verb = method == "post";
      const auto* const word = is_verb ? "POST" : "GET";
      const auto what = fmt::format("{} {}", word, path);
      for (const auto& key : {till_.key, tools_.key})
        EXPECT_EQ(status(word, path, "Authorization: Bearer " + key), 403) << what;
      EXPECT_EQ(status(word, path, "Accept: */*"), 401) << what;
      const auto by_key = status(word, path, "Authorization: Bearer " + eye_.key);
      const auto by_cookie = status(word, path, "Sec-Fetch-Site: same-origin\r\nCookie: " + cookie);
      EXPECT_EQ(by_cookie, by_key) << what;
      if (is_verb) EXPECT_EQ(by_key, 403) << what;
      if (!is_verb) EXPECT_TRUE(by_key == 200 || by_key == 404) << what << by_key;
      const auto by_operator =
          is_verb ? status(word, path, "Authorization: Bearer " + bob_.key) : 0;
      if (is_verb) EXPECT_TRUE(by_operator != 401 && by_operator != 403) << what << by_operator;
      ++(is_verb ? verbs : views);
    }
  }
  EXPECT_GE(verbs, 17);
  EXPECT_GE(views, 15);
  const auto session = as(eye_, "GET", "/v1/operate/session");
  EXPECT_FALSE(*session.json().find("may_act")->as_bool());
  EXPECT_EQ(as(eye_, "GET", "/v1/sales/tea/all-orders").status, 403) << "that is of 'orders'";
}

}  // namespace
}  // namespace sluice::server
