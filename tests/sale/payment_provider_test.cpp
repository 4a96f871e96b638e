#include "sluice/payment_provider.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice
