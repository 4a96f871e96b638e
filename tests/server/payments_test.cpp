#include <sqlite3/soci-sqlite3.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <thread>
#include <vector>

#include "sale/sql/soci.hpp"
#include "server/receiver.hpp"
#include "server/shop_fixture.hpp"
#include "sluice/order_payments.hpp"
#include "sluice/payment_provider.hpp"
#include "support/collected_log.hpp"

namespace sluice::server {
namespace {

const HmacPayments acme{"acme", WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}};

class Payments : public ShopTest {
 protected:
  void begin_paid(std::int64_t stock, PaymentTerms terms = {.price = 500, .currency = "CNY"}) {
    auto how = options();
    how.shop.worker.claim_after = 60ms;  // a worker looks for what is due twice in that time
    how.providers = {std::make_shared<HmacPayments>(acme)};
    begin({paid_tea(stock, terms)}, std::move(how));
  }
  Answer tell(const std::string& body, const WebhookHead& head) const {
    return ask("POST", "/v1/payments/acme",
               {{"webhook-id", head.id},
                {"webhook-timestamp", head.timestamp},
                {"webhook-signature", head.signature}},
               body);
  }
  Answer tell(const Payment& payment) const {
    const auto body = HmacPayments::body_of(payment);
    return tell(body, acme.sign(body, payment.event, system_clock().wall()));
  }
  static Payment payment_of(const std::string& number, std::int64_t amount = 500) {
    return {.provider = "acme",
            .event = "evt_" + number,
            .sale = "tea",
            .order = number,
            .amount = amount,
            .currency = "CNY"};
  }
  std::string state(std::string_view buyer, const std::string& id) const {
    return ask("GET", "/v1/sales/tea/orders/" + id, {{"Sluice-Buyer", buyer}}).text("state");
  }
};

TEST_F(Payments, V09_AWebhookToldTenTimesIsOneChange) {
  begin_paid(3);
  const auto order = buy("ann", "k", R"({"units":2})");
  const auto shown = [&] {
    return ask("GET", "/v1/sales/tea/orders/" + order.text("id"), {{"Sluice-Buyer", "ann"}});
  };
  ASSERT_TRUE(test::comes_true([&] { return !shown().text("pay_by").empty(); }));
  EXPECT_EQ(*shown().json().find("due")->as_integer(), 1000);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(tell(payment_of(order.text("number"), 1000)).status, 204);
  EXPECT_EQ(state("ann", order.text("id")), "paid");
  const auto orders = open_order_store(options().shop.orders);
  EXPECT_EQ(orders->payments().list("tea", PaymentState::applied, 10).size(), 1U);
  const auto cancelled = ask("POST", "/v1/sales/tea/orders/" + order.text("id") + "/cancel",
                             {{"Sluice-Buyer", "ann"}});
  EXPECT_EQ(cancelled.status, 409);
  EXPECT_EQ(cancelled.problem(), "order-paid");
}

TEST_F(Payments, V09_AWebhookToldTenTimesAtOneInstantIsTakenEachTime) {
  begin_paid(3);
  const auto order = buy("ann", "k");
  ASSERT_TRUE(test::comes_true([&] { return state("ann", order.text("id")) == "awaiting"; }));
  constexpr int times = 10;
  std::barrier together{times};
  std::array<int, times> answers{};
  {
    std::vector<std::jthread> tellers;
    for (auto& answer : answers)
      tellers.emplace_back([&] {
        together.arrive_and_wait();
        answer = tell(payment_of(order.text("number"))).status;
      });
  }
  EXPECT_EQ(std::ranges::count(answers, 204), times);
  EXPECT_EQ(state("ann", order.text("id")), "paid");
  const auto orders = open_order_store(options().shop.orders);
  EXPECT_EQ(orders->payments().list("tea", PaymentState::applied, 10).size(), 1U);
  EXPECT_EQ(orders->payments().find("tea", std::stoll(order.text("id")))->version, 1);
}

TEST_F(Payments, V10_OneThatComesBeforeItsOrderWaitsForIt) {
  begin_paid(3);
  service_.reset();  // its worker would be too fast
  auto sale = Sale::load(*store_, "tea").get();
  const auto order = sale->buy(BuyerId{"ann"}, RequestId{"k"}).get().order;
  const auto orders = open_order_store(options().shop.orders);
  EXPECT_TRUE(orders->payments().keep(payment_of(order->number)));
  begin_paid(3);
  EXPECT_TRUE(test::comes_true([&] { return state("ann", std::to_string(order->id)) == "paid"; }));
}

TEST_F(Payments, V11_ForgedStaleAndReplayedOnesStoreNothing) {
  begin_paid(3);
  const auto order = buy("ann", "k");
  const auto payment = payment_of(order.text("number"));
  const auto body = HmacPayments::body_of(payment);
  const auto now = system_clock().wall();
  const auto head = acme.sign(body, "m", now);
  auto other_body = body;
  other_body[other_body.find("500")] = '9';
  EXPECT_EQ(tell(other_body, head).status, 401);
  EXPECT_EQ(tell(body, acme.sign(body, "m", now - 6min)).status, 401);
  EXPECT_EQ(tell(body, {head.id + "x", head.timestamp, head.signature}).status, 401);
  EXPECT_EQ(ask("POST", "/v1/payments/acme", {}, body).problem(), "not-signed");
  EXPECT_EQ(ask("POST", "/v1/payments/other", {}, body).problem(), "no-provider");
  const auto orders = open_order_store(options().shop.orders);
  EXPECT_FALSE(orders->payments().apply(payment).now) << "it was kept";
}

TEST_F(Payments, V12_AnotherAmountPaysNothingAndIsFlagged) {
  begin_paid(3);
  const auto order = buy("ann", "k");
  ASSERT_TRUE(test::comes_true([&] { return state("ann", order.text("id")) == "awaiting"; }));
  EXPECT_EQ(tell(payment_of(order.text("number"), 499)).status, 204);
  const auto orders = open_order_store(options().shop.orders);
  EXPECT_TRUE(test::comes_true(
      [&] { return orders->payments().list("tea", PaymentState::flagged, 10).size() == 1; }));
  EXPECT_EQ(state("ann", order.text("id")), "awaiting");
}

TEST_F(Payments, AnIdOfAPaymentThatCameBeforePaysNothingAndTheLogSaysSo) {
  begin_paid(3);
  const auto ann = buy("ann", "k");
  const auto bob = buy("bob", "k");
  ASSERT_TRUE(test::comes_true([&] { return state("bob", bob.text("id")) == "awaiting"; }));
  auto second = payment_of(bob.text("number"));
  second.event = payment_of(ann.text("number")).event;
  const test::CollectedLog lines;
  EXPECT_EQ(tell(payment_of(ann.text("number"))).status, 204);
  EXPECT_EQ(tell(payment_of(ann.text("number"))).status, 204);
  EXPECT_EQ(lines.count("the id of another one"), 0U);
  EXPECT_EQ(tell(second).status, 204) << "it would be told for ever";
  EXPECT_EQ(lines.count(fmt::format("order '{}'", bob.text("number"))), 1U) << lines.text();
  EXPECT_EQ(state("bob", bob.text("id")), "awaiting");
  service_.reset();
}

TEST_F(Payments, V05_WhatIsNotPaidInTimeIsSoldAgain) {
  begin_paid(1, {.window = 50ms, .grace = 0us, .price = 500, .currency = "CNY"});
  const auto order = buy("ann", "k");
  EXPECT_EQ(order.status, 201);
  EXPECT_TRUE(test::comes_true([&] { return state("ann", order.text("id")) == "expired"; }));
  EXPECT_TRUE(test::comes_true([&] { return buy("bob", "k").status == 201; }));
  EXPECT_EQ(buy("ann", "k").problem(), "order-ended");
}

TEST_F(Payments, ARowThatSomebodyDamagedHoldsUpNoOther) {
  begin_paid(3);
  const auto damaged = buy("ann", "k");
  ASSERT_TRUE(test::comes_true([&] { return state("ann", damaged.text("id")) == "awaiting"; }));
  const auto sound = buy("bob", "k");
  ASSERT_TRUE(test::comes_true([&] { return state("bob", sound.text("id")) == "awaiting"; }));
  const auto orders = open_order_store(options().shop.orders);
  {
    soci::session somebody{soci::sqlite3, "db=" + (folder_ / "orders.db").string()};
    somebody << "PRAGMA busy_timeout = 10000";
    somebody << "UPDATE sale_orders SET state = 'shipped' WHERE buyer = 'ann'";
  }
  orders->payments().keep(payment_of(damaged.text("number")));
  auto second = payment_of(sound.text("number"));
  second.event = "evt_2";
  orders->payments().keep(second);
  EXPECT_TRUE(test::comes_true([&] { return state("bob", sound.text("id")) == "paid"; }));
}

/// Stripe, without its money: a payment by its webhook, and a refund whose first answer is lost.
TEST_F(Payments, H4_AnotherProviderPaysAndGivesBackByTheSameInterface) {
  test::Receiver api{[n = 0](const auto&) mutable { return n++ == 0 ? 500 : 200; }};
  const auto stripe = std::make_shared<const StripePayments>(
      "stripe", std::vector<std::string>{"whsec_of_this_test"}, "sk_test_1");
  auto how = options();
  how.shop.worker.claim_after = 60ms;
  how.providers = {std::make_shared<HmacPayments>(acme), stripe};
  how.messenger = {
      .refunds = {{stripe, api.url()}}, .http = {.allows_private = true}, .every = 10ms};
  begin({paid_tea(3)}, std::move(how));
  const auto order = buy("ann", "k");
  const auto body = fmt::format(
      R"({{"type":"payment_intent.succeeded","data":{{"object":{{"id":"pi_1","amount_received":500,
"currency":"cny","metadata":{{"sale":"tea","order":"{}"}}}}}}}})",
      order.text("number"));
  const auto tell = [&](const std::string& field) {
    return ask("POST", "/v1/payments/stripe", {{"Stripe-Signature", field}}, body).status;
  };
  const auto now = system_clock().wall();
  EXPECT_EQ(tell(stripe->sign(body, now - 6min)), 401);
  EXPECT_EQ(tell(stripe->sign(body, now)), 204);
  EXPECT_EQ(tell(stripe->sign(body, now)), 204);
  EXPECT_TRUE(test::comes_true([&] { return state("ann", order.text("id")) == "paid"; }));

  const auto id = std::stoll(order.text("id"));
  const auto orders = open_order_store(options().shop.orders);
  orders->payments().cancel_units("tea", id, 0, "k", "by the test");
  EXPECT_TRUE(test::comes_true([&] {
    for (const auto& refund : orders->payments().refunds_of("tea", id))
      if (refund.attempts > 0) orders->payments().refund_failed(refund, "hurried", 0s);
    return orders->payments().totals("tea").refunds == 0;
  }));
  ASSERT_GE(api.count(), 2U);
  for (const auto& got : api.got()) {
    EXPECT_EQ(got.key, api.got().front().key);
    EXPECT_TRUE(got.key.starts_with("stripe.payment.")) << got.key;
    EXPECT_EQ(got.authorization, "Bearer sk_test_1");
    EXPECT_EQ(got.body, fmt::format("payment_intent=pi_1&amount=500&metadata[sale]=tea&metadata["
                                    "order]={}",
                                    order.text("number")));
  }
}

}  // namespace
}  // namespace sluice::server
