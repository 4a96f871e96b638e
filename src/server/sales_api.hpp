/// What buyers ask of sales.
///
///   GET  /v1/sales, /v1/sales/{sale}
///   POST /v1/sales/{sale}/orders                  buys; the Idempotency-Key is the RequestId
///   GET  /v1/sales/{sale}/orders/{order}          a buyer's own, by id or number
///   POST /v1/sales/{sale}/orders/{order}/cancel
///
/// The last two are answered to keys of the shop, too, for any buyer's order.
#pragma once

#include <memory>
#include <string>

#include "http/routes.hpp"
#include "server/blocking_threads.hpp"
#include "server/buyers.hpp"
#include "server/counter.hpp"
#include "server/entrance.hpp"
#include "server/shop.hpp"
#include "server/shop_keys.hpp"

namespace sluice::server {

/// REQUIRES: what it is made of lives longer, and it longer than the server of its routes.
class SalesApi {
 public:
  SalesApi(Shop& shop, const Buyers& buyers, RateLimits& limits, const ShopKeys& shop_keys,
           BlockingThreads& threads, Entrance& entrance)
      : shop_(shop),
        buyers_(buyers),
        limits_(limits),
        shop_keys_(shop_keys),
        threads_(threads),
        entrance_(entrance) {}

  void add_routes(http::Routes& routes);

 private:
  http::Handler calls(void (SalesApi::*serve)(http::Request&&, http::Responder&&));
  void add_public_routes(http::Routes& routes);
  void add_buyers_routes(http::Routes& routes);

  void list(http::Request&& request, http::Responder&& respond);
  void show(http::Request&& request, http::Responder&& respond);
  void buy(http::Request&& request, http::Responder&& respond);
  void show_order(http::Request&& request, http::Responder&& respond);
  void cancel(http::Request&& request, http::Responder&& respond);

  Task<void> answer_status(std::shared_ptr<Offer> offer, http::Responder respond);
  Task<void> answer_list(http::Responder respond);
  Task<void> answer_purchase(Purchase purchase, http::Responder respond);
  Expected<BuyerId, http::Response> buyer_of(const http::Request& request) const;

  Shop& shop_;
  const Buyers& buyers_;
  RateLimits& limits_;
  const ShopKeys& shop_keys_;
  BlockingThreads& threads_;
  Entrance& entrance_;
};

}  // namespace sluice::server
