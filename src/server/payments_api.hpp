/// What payment providers tell: POST /v1/payments/{provider}.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "http/routes.hpp"
#include "server/blocking_threads.hpp"
#include "server/shop.hpp"
#include "sluice/payment_provider.hpp"

namespace sluice::server {

using PaymentProviders = std::vector<std::shared_ptr<const PaymentProvider>>;

/// A payment is answered when the database has it, and not before: a provider that got no answer
/// tells it again, and then it is known.
/// REQUIRES: what it is made of lives longer, and it longer than the server of its routes.
class PaymentsApi {
 public:
  PaymentsApi(Shop& shop, BlockingThreads& threads, PaymentProviders providers)
      : shop_(shop), threads_(threads), providers_(std::move(providers)) {}

  void add_routes(http::Routes& routes);

 private:
  void take(http::Request&& request, http::Responder&& respond);
  const PaymentProvider* provider_named(std::string_view name) const;

  Shop& shop_;
  BlockingThreads& threads_;
  const PaymentProviders providers_;
};

}  // namespace sluice::server
