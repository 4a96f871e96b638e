/// What payment providers say: their webhooks, read, and their refunds, asked for.
///
///     HmacPayments provider{"acme", WebhookKeys{{secret}}};
///     const auto told = provider.read(head, body, clock.wall());   // HTTP: 401, 400 or on
///     if (told.payment) sale.pay(orders, *told.payment);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/order_payments.hpp"
#include "sluice/webhook.hpp"

namespace sluice {

/// What came, and what to answer.
struct PaymentNotice {
  enum class Trust {
    good,        ///< signed, and of the shape that was agreed upon
    not_signed,  ///< forged, stale or replayed: 401
    no_payment,  ///< signed, but of no shape that we know: 400
  };
  Trust trust = Trust::no_payment;
  std::string why = {};                 ///< it is not good
  std::optional<Payment> payment = {};  ///< empty: it tells of something else; 2xx, and no more
};

/// Threads: any.
class PaymentProvider {
 public:
  virtual ~PaymentProvider() = default;
  /// 1 to 32 letters, digits, '-' or '_'; a part of the key of each payment.
  virtual const std::string& name() const noexcept = 0;
  /// Reads a webhook. `body`: the bytes as they came. Stores nothing, throws nothing but bad_alloc.
  virtual PaymentNotice read(const WebhookHead& head, std::string_view body,
                             WallTime now) const = 0;
};

/// A provider whose webhooks are signed as Standard Webhooks has it. The body is an object of at
/// most 16 KB:
///
/// ```json
/// {"id": "evt_1", "type": "payment.succeeded", "sale": "maotai", "order": "MT202601020001",
///  "amount": 149900, "currency": "CNY"}
/// ```
/// `amount` is an integer in the currency's smallest unit, `currency` three capital letters, `id`
/// the same when the event is told again. Other members may stand there and are not read; of other
/// types nothing is read.
class HmacPayments final : public PaymentProvider {
 public:
  /// Throws Error{bad_argument} for a name that is none.
  HmacPayments(std::string name, WebhookKeys keys);
  const std::string& name() const noexcept override { return name_; }
  PaymentNotice read(const WebhookHead& head, std::string_view body, WallTime now) const override;

  /// What such a provider sends: for tests, and for a demonstration without one.
  static std::string body_of(const Payment& payment);
  WebhookHead sign(std::string_view body, std::string id, WallTime at) const {
    return keys_.sign(std::move(id), at, body);
  }

 private:
  std::string name_;
  WebhookKeys keys_;
};

}  // namespace sluice
