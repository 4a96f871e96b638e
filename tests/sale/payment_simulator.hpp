/// A payment provider in this process: it takes refunds once for each key, and may refuse them or
/// lose its answers; its webhooks are signed and read as real ones.
#pragma once

#include <map>
#include <string>

#include "sluice/order_payments.hpp"
#include "sluice/payment_provider.hpp"

namespace sluice::test {

class PaymentSimulator {
 public:
  /// What a buyer pays: as a webhook that is read again.
  std::optional<Payment> pay(Payment payment, WallTime now) const {
    const auto body = HmacPayments::body_of(payment);
    return provider_.read(provider_.sign(body, payment.event, now), body, now).payment;
  }

  std::string refund(const Refund& refund) {
    ++asked;
    if (refuses > 0) {
      --refuses;
      return "not now";
    }
    taken.emplace(refund_key(refund), refund.amount);
    if (loses_answers > 0) {
      --loses_answers;
      return "no answer came";
    }
    return {};
  }

  std::int64_t given_back() const {
    std::int64_t sum = 0;
    for (const auto& [key, amount] : taken) sum += amount;
    return sum;
  }

  int asked = 0;
  int refuses = 0;
  int loses_answers = 0;
  std::map<std::string, std::int64_t> taken;

 private:
  HmacPayments provider_{"acme", WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}};
};

}  // namespace sluice::test
