/// What payment providers say: their webhooks, read, and their refunds, asked for. A provider
/// without a class here is a class of yours: `sluice serve` knows of each no more than the
/// interface.
///
///     HmacPayments provider{"acme", WebhookKeys{{secret}}};
///     const auto told = provider.read(webhook, clock.wall());   // HTTP: 401, 400 or on
///     if (told.payment) sale.pay(orders, *told.payment);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/order_payments.hpp"
#include "sluice/webhook.hpp"

namespace sluice {

/// A POST by HTTP, which a provider sends or is sent.
struct ProviderRequest {
  /// Names and values of the fields of its head.
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;  ///< the bytes as they came

  /// The value of a field, whose name is the same in any case. Empty: it is missing, or stands
  /// there more than once.
  std::optional<std::string_view> field(std::string_view name) const noexcept;
};

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
  /// Reads a webhook. Stores nothing, throws nothing but bad_alloc.
  virtual PaymentNotice read(const ProviderRequest& webhook, WallTime now) const = 0;
  /// What to POST so that this money goes back: the same key at each repeat, so that the provider
  /// gives it back once. `refund.sale` is the name of the whole sale. Throws Error{bad_argument}:
  /// it cannot be asked, and the message says what is missing.
  virtual ProviderRequest refund(const Refund& refund, WallTime now) const = 0;
  /// Why the answer to that does not mean that the money goes back; empty: it does. A refund that
  /// does not is asked for again. As a rule each status 2xx is good.
  virtual std::string refusal_of(int status, std::string_view body) const;
};

/// The key under which a provider gets a refund: it names the payment and the part of it, so that
/// the same money has the same key, also in a database that was restored and has forgotten it, and
/// other money has another one. A refund of an older version has the order and its version.
std::string refund_key(const Refund& refund);

/// A provider whose webhooks are signed as Standard Webhooks has it. The body is an object of at
/// most 16 KB:
///
/// ```json
/// {"id": "evt_1", "type": "payment.succeeded", "sale": "maotai", "order": "MT202601020001",
///  "amount": 149900, "currency": "CNY"}
/// ```
/// `amount` is an integer in the currency's smallest unit, `currency` three capital letters, `id`
/// the same when the event is told again. Other members may stand there and are not read; of other
/// types nothing is read. Refunds are signed likewise: `{"id", "sale", "order", "payment" (the id
/// of its event), "amount", "currency", "total"}`, with the id as Idempotency-Key. `total` is what
/// has gone back of the payment with this refund; a refund of an older version has none.
class HmacPayments final : public PaymentProvider {
 public:
  /// Throws Error{bad_argument} for a name that is none.
  HmacPayments(std::string name, WebhookKeys keys);
  const std::string& name() const noexcept override { return name_; }
  PaymentNotice read(const ProviderRequest& webhook, WallTime now) const override;
  PaymentNotice read(const WebhookHead& head, std::string_view body, WallTime now) const;
  ProviderRequest refund(const Refund& refund, WallTime now) const override;

  /// What such a provider sends: for tests, and for a demonstration without one.
  static std::string body_of(const Payment& payment);
  WebhookHead sign(std::string_view body, std::string id, WallTime at) const {
    return keys_.sign(std::move(id), at, body);
  }

 private:
  std::string name_;
  WebhookKeys keys_;
};

/// Stripe: `payment_intent.succeeded` of payment intents whose metadata name the `sale` and the
/// `order` (its id or number), as the shop's checkout has to set them; of all else nothing is read.
/// The id of the intent is the payment's event, so each intent pays once, whatever events tell of
/// it.
///
/// Guarantee: a webhook that is read has in its Stripe-Signature a signature `v1` by one of the
///   secrets of these very bytes and of a time of the last five minutes; other schemes are ignored.
/// Not guaranteed: that a refund whose answer was lost, and that is asked for again more than a day
///   later, is not given twice: Stripe keeps its keys for a day. It never gives back more than was
///   paid.
class StripePayments final : public PaymentProvider {
 public:
  static constexpr std::chrono::seconds tolerance{300};
  /// Where refunds are asked for.
  static constexpr std::string_view refunds_url = "https://api.stripe.com/v1/refunds";

  /// One or two signing secrets of the endpoint, "whsec_...", as Stripe shows them, and the key by
  /// which refunds are asked for; without one there are none. Throws Error{bad_argument} for what
  /// is no name or no secret; it does not show the secret.
  StripePayments(std::string name, std::vector<std::string> secrets, std::string api_key = {});
  const std::string& name() const noexcept override { return name_; }
  PaymentNotice read(const ProviderRequest& webhook, WallTime now) const override;
  ProviderRequest refund(const Refund& refund, WallTime now) const override;
  /// A refund that has failed is refused, though its status is 200; one of a payment that has gone
  /// back as a whole is done.
  std::string refusal_of(int status, std::string_view body) const override;

  /// The field Stripe-Signature of what Stripe sends: for tests.
  std::string sign(std::string_view body, WallTime at) const;

 private:
  std::string name_;
  std::vector<std::string> secrets_;
  std::string api_key_;
};

}  // namespace sluice
