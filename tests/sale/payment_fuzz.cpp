// Any bytes as the body of a payment's webhook, rightly signed, and any bytes as its head: they are
// refused with a reason, or they are a payment of the shape that is documented, which is written
// and read again as the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/payment_provider.hpp"
#include "support/fuzz_require.hpp"

namespace {

using namespace sluice;
using test::require;

constexpr WallTime told_at{std::chrono::seconds{1'767'369'597}};

void read_signed(const HmacPayments& provider, std::string_view body) {
  const auto told = provider.read(provider.sign(body, "msg_1", told_at), body, told_at);
  require(told.trust != PaymentNotice::Trust::not_signed, "our own signature is refused");
  require((told.trust == PaymentNotice::Trust::good) == told.why.empty(), "no reason, or one");
  if (!told.payment) return;
  const auto& payment = *told.payment;
  require(payment.amount > 0 && payment.currency.size() == 3 && !payment.event.empty() &&
              payment.provider == "acme",
          "an impossible payment");
  const auto again = HmacPayments::body_of(payment);
  require(provider.read(provider.sign(again, "m", told_at), again, told_at).payment == payment,
          "a payment that is not read as it was written");
}

void read_unsigned(const HmacPayments& provider, std::string_view bytes) {
  const auto third = bytes.size() / 3;
  const WebhookHead head{.id = std::string{bytes.substr(0, third)},
                         .timestamp = std::string{bytes.substr(third, third)},
                         .signature = "v1," + std::string{bytes.substr(2 * third)}};
  require(provider.read(head, bytes, told_at).trust == PaymentNotice::Trust::not_signed,
          "a forged signature is taken");
}

void read_stripe(const StripePayments& stripe, const std::string& bytes) {
  const auto field = stripe.sign(bytes, told_at);
  const auto told = stripe.read({{{"Stripe-Signature", field}}, bytes}, told_at);
  require(told.trust != PaymentNotice::Trust::not_signed, "Stripe's signature is refused");
  require((told.trust == PaymentNotice::Trust::good) == told.why.empty(), "no reason, or one");
  const auto forged = stripe.read({{{"Stripe-Signature", bytes}}, "{}"}, told_at);
  require(forged.trust == PaymentNotice::Trust::not_signed, "a forged signature is taken");
  (void)stripe.refusal_of(200, bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const HmacPayments provider{"acme",
                                     WebhookKeys{{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}};
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  read_signed(provider, bytes);
  read_unsigned(provider, bytes);
  static const StripePayments stripe{"stripe", {"whsec_of_a_fuzzer"}};
  read_stripe(stripe, std::string{bytes});
  return 0;
}
