/// What requests for orders say, read; and what they ask for, found. What is wrong comes back as
/// the answer to it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.hpp"
#include "server/buyers.hpp"
#include "server/sales_text.hpp"
#include "server/shop.hpp"
#include "server/shop_keys.hpp"

namespace sluice::server {

/// The Idempotency-Key: a string of structured fields, RFC 9651, or without its quotes, as many
/// clients send it.
Expected<RequestId, http::Response> key_of(const http::Request& request);
/// The body, an object. `known`: the members that it may have; others are a misspelt wish.
Expected<JsonValue, http::Response> body_of(const http::Request& request,
                                            std::initializer_list<std::string_view> known);
/// Empty: there is no such state.
std::optional<OrderState> order_state_named(std::string_view name);
/// Empty: there are none.
Expected<std::optional<std::int64_t>, http::Response> units_of(const JsonValue& body);
Expected<std::string, http::Response> reason_of(const JsonValue& body);

/// The sale of the path.
Expected<std::shared_ptr<Offer>, http::Response> offer_of(const Shop& shop,
                                                          const http::Request& request);

/// Who asks for an order: a buyer for his own, or the shop for any.
struct Asker {
  std::optional<BuyerId> buyer;  ///< empty: the shop
  std::string subject;           ///< for BlockingThreads
};
/// A key of the shop begins in a way in which no token of a buyer does.
Expected<Asker, http::Response> asker_of(const http::Request& request, const Buyers& buyers,
                                         const ShopKeys& shop_keys);
/// The same of a request that the shop alone may make.
Expected<Asker, http::Response> asker_of(const http::Request& request, const ShopKeys& shop_keys);

/// The order of that id or number, if it is the asker's: the database knows it, or it is on its way
/// there: of a buyer his latest one, of the shop any.
std::optional<ShownOrder> find_order(Offer& offer, OrderStore& orders, const Asker& asker,
                                     const std::string& word);
/// What he is told who asks for an order that is not found. Of a buyer's orders the store finds the
/// latest by its id, and no other: an earlier one may be on its way to the database.
http::Response not_found(OfferedSale& sale, OrderStore& orders, const Asker& asker);
/// 503: what is asked for cannot be done until the database has an order.
http::Response not_yet(std::string_view detail);
/// What the database has of orders which it has, all of one part of a sale, ids rising.
std::vector<ShownOrder> shown_to_shop(const std::string& rows, OrderStore& orders,
                                      const std::vector<SaleOrder>& some);
/// Of one, as its asker sees it.
ShownOrder shown_to(const Asker& asker, OfferedSale& sale, OrderStore& orders,
                    const SaleOrder& order);

}  // namespace sluice::server
