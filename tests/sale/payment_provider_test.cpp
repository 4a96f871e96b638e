#include "sluice/payment_provider.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/sha1.hpp"
#include "sluice/error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Trust = PaymentNotice::Trust;

constexpr WallTime told_at{1'767'369'597s};

PaymentNotice read(std::string_view body) {
  const HmacPayments acme{"acme", WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}};
  return acme.read(acme.sign(body, "msg_1", told_at), body, told_at);
}

TEST(PaymentProvider, APaymentIsReadAsItWasWritten) {
  const Payment payment{.provider = "acme",
                        .event = "evt \"1\"",
                        .sale = "maotai",
                        .order = "MT202601020001",
                        .amount = 149'900,
                        .currency = "CNY"};
  const auto told = read(HmacPayments::body_of(payment));
  EXPECT_EQ(told.trust, Trust::good) << told.why;
  EXPECT_EQ(told.payment, payment);
}

TEST(PaymentProvider, WhatIsNoPaymentOfOursIsTakenAndNotRead) {
  const auto told = read(R"({"type":"payment.created","order":5})");
  EXPECT_EQ(told.trust, Trust::good);
  EXPECT_FALSE(told.payment);
}

TEST(PaymentProvider, AnotherShapeIsRefused) {
  const std::string rest = R"("type":"payment.succeeded","id":"e","sale":"s","order":"MT1",)";
  for (const auto& body : {
           std::string{""},
           std::string{"null"},
           std::string{"[]"},
           std::string{R"({"type":5})"},
           "{" + rest + R"("currency":"CNY"})",
           "{" + rest + R"("amount":"100","currency":"CNY"})",
           "{" + rest + R"("amount":100.0,"currency":"CNY"})",
           "{" + rest + R"("amount":1e2,"currency":"CNY"})",
           "{" + rest + R"("amount":0,"currency":"CNY"})",
           "{" + rest + R"("amount":-1,"currency":"CNY"})",
           "{" + rest + R"("amount":99999999999999999999,"currency":"CNY"})",
           "{" + rest + R"("amount":100,"currency":"cny"})",
           "{" + rest + R"("amount":100,"currency":"CN"})",
           "{" + rest + R"("amount":100,"amount":1,"currency":"CNY"})",
           "{" + rest + R"("amount":100,"currency":"CNY","more":[[[[[[[[[1]]]]]]]]]})",
           "{" + rest + R"("amount":100,"currency":"CNY"} {})",
           "{" + rest + R"("amount":100,"currency":"CNY","more":")" + std::string(20'000, 'x') +
               "\"}",
           std::string{R"({"type":"payment.succeeded","id":5,"sale":"s","order":"MT1",)"} +
               R"("amount":100,"currency":"CNY"})",
       }) {
    const auto told = read(body);
    EXPECT_EQ(told.trust, Trust::no_payment) << body.substr(0, 200);
    EXPECT_FALSE(told.why.empty());
  }
}

TEST(PaymentProvider, V11_AForgedOneIsNotRead) {
  const HmacPayments acme{"acme", WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}};
  const auto body = HmacPayments::body_of(
      {.event = "e", .sale = "s", .order = "MT1", .amount = 1, .currency = "CNY"});
  auto head = acme.sign(body, "msg_1", told_at);
  EXPECT_EQ(acme.read(head, body + " ", told_at).trust, Trust::not_signed);
  EXPECT_EQ(acme.read(head, body, told_at + 6min).trust, Trust::not_signed);
  EXPECT_EQ(acme.read({}, body, told_at).trust, Trust::not_signed);
  EXPECT_THROW((HmacPayments{"a b", WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}}),
               Error);
}

// The webhooks of stripe-dotnet (commit 6045930, EventUtilityTest, event_test_signature.json)
// and of async-stripe (webhook.rs, test_webhook_construct_event).
constexpr WallTime stripe_time{1'533'204'620s};

std::string stripe_event(std::string_view object, std::string_view type) {
  return fmt::format(R"({{
  "id": "evt_123",
  "object": "event",
  "account": "acct_123",
  "api_version": "2017-05-25",
  "created": 1533204620,
  "data": {{
    "object": {}
  }},
  "livemode": false,
  "pending_webhooks": 1,
  "request": {{
    "id": "req_123",
    "idempotency_key": "idempotency-key-123"
  }},
  "type": "{}"
}}
)",
                     object, type);
}

const std::string customer = stripe_event(R"({
      "id": "cus_123",
      "object": "customer",
      "created": 123456789,
      "email": "test@stripe.com",
      "livemode": false,
      "metadata": {}
    })",
                                          "customer.created");
const std::string invoice_item = stripe_event(R"({
      "id": "ii_123",
      "object": "invoiceitem",
      "amount": 1000,
      "currency": "usd",
      "customer": "cus_123",
      "date": 1533204620,
      "description": "Test Invoice Item",
      "discountable": false,
      "invoice": "in_123",
      "livemode": false,
      "metadata": {},
      "period": {
        "start": 1533204620,
        "end": 1533204620
      },
      "proration": false,
      "quantity": 3
    })",
                                              "invoiceitem.created");
const std::string customer_v1 = "2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7";
const std::string item_v1 = "82216eca827bcb7b34b8055eb2d2d9e6bc13b9ac39ded14a61e69f70c565f53a";
const std::string some_v0 = "63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef";
const std::string customer_field = "t=1533204620,v1=" + customer_v1 + ",v0=" + some_v0;

const StripePayments stripe{"stripe", {"webhook_secret"}, "sk_test_1"};

PaymentNotice read_stripe(const std::string& field, const std::string& body,
                          WallTime now = stripe_time) {
  return stripe.read({.fields = {{"stripe-signature", field}}, .body = body}, now);
}

TEST(StripePayments, H4_ReadsTheWebhooksOfStripesOwnTests) {
  EXPECT_EQ(read_stripe(customer_field, customer).why, "");
  EXPECT_EQ(read_stripe("t=1533204620,v1=" + item_v1 + ",v0=" + some_v0, invoice_item).why, "");
  EXPECT_EQ(stripe.sign(customer, stripe_time), "t=1533204620,v1=" + customer_v1);
  const auto late = stripe_time + StripePayments::tolerance;
  EXPECT_EQ(read_stripe(customer_field, customer, late).trust, Trust::good);
  EXPECT_EQ(read_stripe(customer_field, customer, late + 1us).trust, Trust::not_signed);
  EXPECT_EQ(read_stripe(customer_field, customer, stripe_time - 301s).trust, Trust::not_signed);
  const StripePayments changing{"stripe", {"another_secret", "webhook_secret"}};
  EXPECT_EQ(changing.read({{{"Stripe-Signature", customer_field}}, customer}, stripe_time).why, "");
}

TEST(StripePayments, H4_TheFieldIsReadAsStripeSays) {
  const auto t = std::string{"t=1533204620"};
  const auto v1 = ",v1=" + customer_v1;
  for (const auto& good : {t + v1, t + ",v1=00" + v1, t + v1 + ",v1=00", v1.substr(1) + "," + t,
                           t + ",v0=1,v2=2,x,=," + v1, t + v1 + ","})
    EXPECT_EQ(read_stripe(good, customer).why, "") << good;
  for (const auto& bad :
       {std::string{}, t, v1.substr(1), t + ",v0=" + customer_v1, t + "," + t + v1,
        t + ", v1=" + customer_v1, "t=01533204620" + v1, "t=+1533204620" + v1, "t= 1533204620" + v1,
        "t=1533204621" + v1, "t=99999999999999999999" + v1, "t=-1" + v1, t + ",v1=" + some_v0,
        t + v1.substr(0, v1.size() - 1), t + v1 + "0"})
    EXPECT_EQ(read_stripe(bad, customer).trust, Trust::not_signed) << bad;
  EXPECT_EQ(read_stripe(customer_field, customer + " ").trust, Trust::not_signed);
  const std::pair<std::string, std::string> once{"Stripe-Signature", customer_field};
  EXPECT_EQ(stripe.read({{once, once}, customer}, stripe_time).trust, Trust::not_signed) << "twice";
  EXPECT_EQ(stripe.read({{}, customer}, stripe_time).trust, Trust::not_signed);
}

/// Each byte of the field changed into each other one, left out, and doubled: what is taken has the
/// right time and the right signature in it still.
TEST(StripePayments, H4_NoByteOfTheFieldCanBeAnother) {
  const auto time = std::string{"t=1533204620"};
  const auto right = "v1=" + customer_v1;
  std::size_t taken = 0;
  const auto look = [&](const std::string& field) {
    if (read_stripe(field, customer).trust == Trust::not_signed) return;
    ++taken;
    const auto items = "," + field + ",";
    EXPECT_TRUE(items.contains("," + time + ",") && items.contains("," + right + ",")) << field;
  };
  for (std::size_t at = 0; at < customer_field.size(); ++at) {
    const bool says_nothing = at > customer_field.find(",v0");
    for (int byte = 0; byte < 256; byte += says_nothing ? 16 : 1) {
      auto field = customer_field;
      field[at] = static_cast<char>(byte);
      look(field);
    }
    look(customer_field.substr(0, at) + customer_field.substr(at + 1));
    look(customer_field.substr(0, at) + customer_field.substr(at));
    look(customer_field.substr(0, at));
  }
  EXPECT_GT(taken, 500U) << "what stands in v0 says nothing";
}

PaymentNotice read_intent(std::string_view intent,
                          std::string_view type = "payment_intent.succeeded") {
  const auto body = stripe_event(intent, type);
  return read_stripe(stripe.sign(body, stripe_time), body);
}

TEST(StripePayments, H4_APaymentIntentOfOursIsAPayment) {
  const auto told = read_intent(
      R"({"id":"pi_1","amount":900,"amount_received":800,"currency":"usd",
"metadata":{"sale":"maotai","order":"MT1","more":"x"}})");
  EXPECT_EQ(told.why, "");
  EXPECT_EQ(told.payment, (Payment{.provider = "stripe",
                                   .event = "pi_1",
                                   .sale = "maotai",
                                   .order = "MT1",
                                   .amount = 800,
                                   .currency = "USD"}));
  const std::string ours = R"("metadata":{"sale":"s","order":"MT1"})";
  for (const auto& other :
       {read_intent("{\"id\":\"pi_1\"," + ours + "}", "payment_intent.created"),
        read_intent(R"({"id":"pi_1","metadata":{}})"), read_intent(R"({"id":"pi_1"})"),
        read_intent("5"), read_intent("[]", "x")}) {
    EXPECT_EQ(other.trust, Trust::good) << other.why;
    EXPECT_FALSE(other.payment);
  }
  for (const std::string& bad :
       {std::string{R"({"id":"pi_1","amount_received":1,"currency":"usd",)"} +
            R"("metadata":{"sale":"s"}})",
        std::string{R"({"id":"pi_1","amount_received":1,"currency":"usd",)"} +
            R"("metadata":{"order":"MT1"}})",
        R"({"id":5,"amount_received":1,"currency":"usd",)" + ours + "}",
        R"({"id":"pi_1","amount_received":"1","currency":"usd",)" + ours + "}",
        R"({"id":"pi_1","amount_received":0,"currency":"usd",)" + ours + "}",
        R"({"id":"pi_1","amount":1,"currency":"usd",)" + ours + "}",
        R"({"id":"pi_1","amount_received":1,"currency":"u$d",)" + ours + "}"})
    EXPECT_EQ(read_intent(bad).trust, Trust::no_payment) << bad;
}

// The same money has one key, whatever the version of its order, and other money another one.
TEST(RefundKey, SV18_ItNamesThePaymentAndThePartOfIt) {
  Refund refund{.id = 7, .seq = 2, .amount = 500, .event = "pi_1", .part = "0-500"};
  const auto payment = "payment." + sha1_hex("pi_1");
  EXPECT_EQ(refund_key(refund), payment + ".0-500");
  refund.seq = 9;
  EXPECT_EQ(refund_key(refund), payment + ".0-500");
  refund.part = "whole";
  EXPECT_EQ(refund_key(refund), payment) << "as one that a person sends back";
  refund.id = 0;
  refund.part.clear();
  EXPECT_EQ(refund_key(refund), payment);
  const HmacPayments acme{"acme", WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}};
  refund = {.id = 7, .amount = 500, .event = "pi_1", .part = "1000-1500"};
  EXPECT_TRUE(acme.refund(refund, {}).body.ends_with(R"("total":1500})"));
  refund.part = "whole";
  EXPECT_TRUE(acme.refund(refund, {}).body.ends_with(R"("total":500})"));
}

TEST(StripePayments, H4_ARefundHasOneKeyAndTheBytesOfStripesApi) {
  const Refund refund{.sale = "a & b",
                      .order = "MT1",
                      .id = 7,
                      .seq = 2,
                      .amount = 500,
                      .currency = "USD",
                      .provider = "stripe",
                      .event = "pi_1"};
  const auto asked = stripe.refund(refund, stripe_time);
  EXPECT_EQ(asked.body,
            "payment_intent=pi_1&amount=500&metadata[sale]=a%20%26%20b&metadata[order]=MT1");
  EXPECT_EQ(asked.field("Idempotency-Key"), "stripe.7.2") << "it was noted by an older version";
  EXPECT_EQ(asked.field("AUTHORIZATION"), "Bearer sk_test_1");
  EXPECT_EQ(stripe.refusal_of(200, R"({"id":"re_1","status":"pending"})"), "");
  EXPECT_EQ(stripe.refusal_of(200, ""), "");
  EXPECT_EQ(stripe.refusal_of(200, R"({"status":"failed"})"), "says that the refund is failed");
  EXPECT_EQ(stripe.refusal_of(400, R"({"error":{"code":"charge_already_refunded"}})"), "");
  EXPECT_EQ(stripe.refusal_of(402, R"({"error":{"code":"insufficient_funds"}})"),
            "answered 402 insufficient_funds");
  EXPECT_EQ(
      stripe.refusal_of(404, R"({"error":{"code":"resource_missing","message":"No\ncharge"}})"),
      "answered 404 resource_missing: No charge");
  EXPECT_EQ(stripe.refusal_of(500, "<html>"), "answered 500: <html>");
  EXPECT_EQ(stripe.refusal_of(500, "  a\x01\xff\xc3\xa9\r\n b\x7f"), "answered 500: a \xc3\xa9 b");
  EXPECT_EQ(stripe.refusal_of(500, std::string(5000, 'x')).size(), 214U);
  EXPECT_THROW((StripePayments{"stripe", {"webhook_secret"}}.refund(refund, stripe_time)), Error);
  EXPECT_THROW((StripePayments{"stripe", {}}), Error);
  EXPECT_THROW((StripePayments{"stripe", {"short"}}), Error);
  EXPECT_THROW((StripePayments{"stripe", {"webhook_secret"}, "sk_\r\nx"}), Error);
}

}  // namespace
}  // namespace sluice
