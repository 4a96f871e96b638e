/// Where buyers are served, whichever way they came.
#pragma once

#include <memory>
#include <string>

#include "http/response.hpp"
#include "server/entrance.hpp"
#include "server/shop.hpp"
#include "sluice/task.hpp"

namespace sluice::server {

struct Purchase {
  std::shared_ptr<Offer> offer;
  BuyerId buyer;
  RequestId wish;
  std::int64_t units = 1;
  std::string ticket = {};  ///< of the waiting room; empty: none
};

/// 201, 200 or the refusal, as the API says it. Throws what the store throws.
Task<http::Response> serve_at_counter(Entrance& entrance, Purchase purchase);

}  // namespace sluice::server
