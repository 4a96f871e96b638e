/// What the shop asks of all orders of a sale, with a key of the scope `orders`.
///
///   GET  /v1/sales/{sale}/all-orders              page after page
///   POST /v1/sales/{sale}/orders/{order}/refund   takes units back, and gives their price back
///
/// A single order is shown and cancelled by the same calls as for its buyer (SalesApi).
#pragma once

#include <string>
#include <vector>

#include "http/routes.hpp"
#include "server/blocking_threads.hpp"
#include "server/order_requests.hpp"
#include "server/shop.hpp"
#include "server/shop_keys.hpp"

namespace sluice::server {

/// Units that are to be taken back.
struct TakeBack {
  http::Request request;  ///< with `order` in its path
  Asker asker;
  std::string key;         ///< names this wish
  std::int64_t units = 0;  ///< 0: all that are left
  std::string reason;
};
/// What was found, and goes back.
struct TakenBack {
  std::string order;  ///< its number
  std::int64_t refund = 0;
};
/// Takes them back; answers with the order as it stands now. Blocks the thread.
http::Response take_back(Offer& offer, OrderStore& orders, const TakeBack& wish, TakenBack& taken);
/// Of its routes.
std::vector<const http::ProblemType*> problems_of_take_back();

/// REQUIRES: what it is made of lives longer, and it longer than the server of its routes.
class OrdersApi {
 public:
  OrdersApi(Shop& shop, const ShopKeys& shop_keys, BlockingThreads& threads)
      : shop_(shop), shop_keys_(shop_keys), threads_(threads) {}

  /// None where the shop has no keys.
  void add_routes(http::Routes& routes);

 private:
  void list(http::Request&& request, http::Responder&& respond);
  void refund(http::Request&& request, http::Responder&& respond);

  Shop& shop_;
  const ShopKeys& shop_keys_;
  BlockingThreads& threads_;
};

}  // namespace sluice::server
