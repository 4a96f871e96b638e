/// Where buyers are served, whichever way they came.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "http/response.hpp"
#include "server/entrance.hpp"
#include "server/sales_text.hpp"
#include "server/shop.hpp"
#include "sluice/expected.hpp"
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

/// The sale of that name, or why it is not sold.
Expected<std::shared_ptr<Offer>, http::Response> find_offer(const Shop& shop,
                                                            std::string_view name);

/// The order of that id or number, if it is this buyer's: the database knows it, or it is on its
/// way there. Blocks.
std::optional<ShownOrder> find_order(Sale& sale, OrderStore& orders, const BuyerId& buyer,
                                     const std::string& word);

}  // namespace sluice::server
