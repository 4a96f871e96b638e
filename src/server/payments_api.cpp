#include "server/payments_api.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sale/buckets/bucket_name.hpp"
#include "sale/database_failure.hpp"
#include "sale/definition.hpp"
#include "sale/differences.hpp"
#include "server/background.hpp"
#include "server/problems.hpp"
#include "sluice/log.hpp"
#include "sluice/order_payments.hpp"

namespace sluice::server {
namespace {

/// Of one order: providers tell a payment again while they have no answer, several times at once.
constexpr std::size_t most_waiting = 100;

ProviderRequest webhook_of(const http::Request& request) {
  ProviderRequest webhook{.fields = {}, .body = request.body()};
  for (const auto& [name, value] : request.fields()) webhook.fields.emplace_back(name, value);
  return webhook;
}

/// What the payment is of: one that names a bucket is of the whole sale, where its number says
/// which bucket it is.
std::string sale_of(OrderStore& orders, const std::string& name) {
  for (const auto& [field, value] : orders.definition(name))
    if (field == sale::bucket_field) return sale::whole_name(name);
  return name;
}

/// What is signed comes from a provider: nobody else writes lines here.
void complain(const Payment& payment, std::string_view why) {
  log(LogLevel::warning,
      fmt::format("payment '{}' of {} for order '{}' of sale '{}' paid nothing: {}; see "
                  "'sluice sale payments'",
                  sale::shown(payment.event), payment.provider, sale::shown(payment.order),
                  sale::shown(payment.sale), why));
}

/// A payment that the database keeps is taken, whatever the store says: workers go on with it.
PaymentResult pay(Offer& offer, OrderStore& orders, const Payment& payment) try {
  return offer.sale().pay(orders, payment);
} catch (const Error& failure) {
  if (sale::is_of_database(failure) || failure.effect() == Effect::none) throw;
  log(LogLevel::warning,
      fmt::format("sale '{}': payment '{}' is kept, and workers go on with it: {}", offer.name(),
                  sale::shown(payment.event), failure.message()));
  return {.state = PaymentState::asking};
}

/// One of a sale that nobody here knows is kept, too: its row may come with the sale. One of a sale
/// with buckets is kept by that alone, which knows the bucket of its order; until it is loaded the
/// provider has to tell it again.
http::Response keep(Shop& shop, OrderStore& orders, Payment payment) {
  if (!shop.find(payment.sale)) payment.sale = sale_of(orders, payment.sale);
  if (const auto offer = shop.find(payment.sale)) {
    const auto result = pay(*offer, orders, payment);
    if (result.differs)
      log(LogLevel::warning,
          fmt::format("a payment of {} for order '{}' of sale '{}' has the id of another one that "
                      "came before: it is not kept, and its money is with the provider",
                      payment.provider, sale::shown(payment.order), offer->name()));
    if (result.state == PaymentState::flagged && result.now) complain(payment, result.note);
    if (result.state == PaymentState::waiting)
      complain(payment, "that order is not in the database yet");
    return {.status = 204};
  }
  if (orders.stock(sale::bucket_name(payment.sale, 0))) {
    auto response = http::problem(problems::recovering);
    http::add_retry_after(response, std::chrono::seconds{1});
    return response;
  }
  if (orders.payments().keep(payment)) complain(payment, "nobody here knows that sale");
  return {.status = 204};
}

}  // namespace

const PaymentProvider* PaymentsApi::provider_named(std::string_view name) const {
  const auto found = std::ranges::find_if(
      providers_, [&](const auto& provider) { return provider->name() == name; });
  return found == providers_.end() ? nullptr : found->get();
}

void PaymentsApi::take(http::Request&& request, http::Responder&& respond) {
  const auto* const provider = provider_named(request.parameter("provider"));
  if (!provider) return respond.send(http::problem(problems::no_provider));
  const auto notice = provider->read(webhook_of(request), system_clock().wall());
  if (notice.trust == PaymentNotice::Trust::not_signed)
    return respond.send(http::problem(problems::not_signed, notice.why));
  if (notice.trust == PaymentNotice::Trust::no_payment)
    return respond.send(http::problem(problems::bad_body, notice.why));
  if (!notice.payment) return respond.send({.status = 204});  // of something else
  // Those of one order come one after another; those of others do not wait for them.
  in_background(
      threads_, fmt::format("payment of {}", notice.payment->order), std::move(respond),
      [this, payment = *notice.payment](OrderStore& orders) {
        return keep(shop_, orders, payment);
      },
      notice.payment->sale, most_waiting);
}

void PaymentsApi::add_routes(http::Routes& routes) {
  if (providers_.empty()) return;
  const auto signed_by = [](const char* name, const char* what) {
    return http::Parameter{name, "header", what};
  };
  routes.add(
      {.method = "POST",
       .path = "/v1/payments/{provider}",
       .operation = "take_payment",
       .summary = "A provider tells of a payment, as often as it likes",
       .parameters = {signed_by("webhook-id", "The same when it is told again"),
                      signed_by("webhook-timestamp", "Seconds since 1970"),
                      signed_by("webhook-signature", "As Standard Webhooks 1.0 has it"),
                      signed_by("Stripe-Signature", "Of Stripe, in place of these three")},
       .request = R"({"type":"object"})",
       .answers = {{204, "It is kept, and workers go on with it", {}}},
       .problems = {&problems::no_provider, &problems::not_signed, &problems::bad_body,
                    &problems::recovering, &problems::too_many_requests, &problems::database_failed,
                    &problems::store_failed, &problems::effect_unknown, &problems::busy},
       .handler = [this](http::Request&& request, http::Responder&& respond) {
         take(std::move(request), std::move(respond));
       }});
}

}  // namespace sluice::server
