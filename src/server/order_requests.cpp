#include "server/order_requests.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "server/bearer.hpp"
#include "server/problems.hpp"
#include "server/request_parts.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t longest_key = 128;
constexpr std::size_t longest_reason = 1000;

Unexpected<http::Response> refuse_request(const http::ProblemType& type,
                                          std::string_view detail = {}) {
  return Unexpected{http::problem(type, detail)};
}

bool brings_shop_key(const http::Request& request) {
  const auto word = bearer_of(request, problems::unknown_key);
  return word && word->starts_with("sk.");
}

}  // namespace

Expected<RequestId, http::Response> key_of(const http::Request& request) {
  if (request.count("Idempotency-Key") > 1)
    return refuse_request(problems::no_idempotency_key, "the field stands there more than once");
  auto key = request.field("Idempotency-Key").value_or("");
  if (key.size() >= 2 && key.front() == '"' && key.back() == '"')
    key = key.substr(1, key.size() - 2);
  if (key.empty() || key.size() > longest_key || key.find('"') != key.npos ||
      key.find('\\') != key.npos)
    return refuse_request(
        problems::no_idempotency_key,
        "send a random Idempotency-Key of 1 to 128 characters, the same with each repeat");
  return RequestId{std::string{key}};
}

Expected<JsonValue, http::Response> body_of(const http::Request& request,
                                            std::initializer_list<std::string_view> known) {
  if (request.body().empty()) return JsonValue{JsonValue::Object{}};
  auto body = JsonValue::parse(request.body(), {.bytes = 16 << 10, .depth = 4});
  if (!body) return refuse_request(problems::bad_body, body.error());
  const auto* const members = body->as_object();
  if (!members) return refuse_request(problems::bad_body, "it is no JSON object");
  for (const auto& [name, value] : *members)
    if (std::ranges::find(known, name) == known.end())
      return refuse_request(problems::bad_body,
                            fmt::format("'{}' is not known here", name.substr(0, 40)));
  return std::move(*body);
}

std::optional<OrderState> order_state_named(std::string_view name) {
  using enum OrderState;
  for (const auto state : {awaiting, cancelled, paid, expired, refunding, refunded})
    if (to_string(state) == name) return state;
  return std::nullopt;
}

Expected<std::optional<std::int64_t>, http::Response> units_of(const JsonValue& body) {
  const auto* const value = body.find("units");
  if (!value) return std::optional<std::int64_t>{};
  const auto* const units = value->as_integer();
  if (!units || *units < 1)
    return refuse_request(problems::bad_body, "'units' is a whole number, at least 1");
  return std::optional{*units};
}

Expected<std::string, http::Response> reason_of(const JsonValue& body) {
  return text_of(body, "reason", longest_reason);
}

Expected<std::shared_ptr<Offer>, http::Response> offer_of(const Shop& shop,
                                                          const http::Request& request) {
  const auto& name = request.parameter("sale");
  if (auto offer = shop.find(name)) return offer;
  if (shop.trouble_of(name).empty()) return refuse_request(problems::no_sale);
  auto response = http::problem(problems::recovering);
  http::add_retry_after(response, 1s);
  return Unexpected{std::move(response)};
}

Expected<Asker, http::Response> asker_of(const http::Request& request, const Buyers& buyers,
                                         const ShopKeys& shop_keys) {
  if (brings_shop_key(request)) return asker_of(request, shop_keys);
  auto buyer = buyers.who_asks(request, request.parameter("sale"));
  if (!buyer) return Unexpected{std::move(buyer.error())};
  Asker asker{.buyer = std::move(*buyer), .subject = {}};
  asker.subject = asker.buyer->value;
  return asker;
}

/// The shop asks for many orders at a time, so those of one wait for each other alone.
Expected<Asker, http::Response> asker_of(const http::Request& request, const ShopKeys& shop_keys) {
  const auto key = shop_keys.who_asks(request, Scope::orders);
  if (!key) return Unexpected{key.error()};
  return Asker{.buyer = std::nullopt, .subject = fmt::format("key {} {}", *key, request.path())};
}

namespace {

/// Of that number or id, as far as the database knows it; of a buyer in his part of the sale.
std::optional<SaleOrder> find_recorded(OfferedSale& sale, OrderStore& orders,
                                       const std::optional<BuyerId>& buyer,
                                       const std::string& word) {
  const auto id = parse_integer<std::int64_t>(word);
  for (const auto* const part : buyer ? std::vector{&sale.part_of(*buyer)} : sale.parts()) {
    const auto& rows = part->definition().name;
    if (auto found = orders.find_number(rows, word)) return found;
    if (!id) continue;
    if (auto found = orders.find(rows, std::span{&*id, 1}); !found.empty())
      return std::move(found.front());
  }
  return std::nullopt;
}

}  // namespace

std::optional<ShownOrder> find_order(Offer& offer, OrderStore& orders, const Asker& asker,
                                     const std::string& word) {
  auto& sale = offer.sale();
  const auto id = parse_integer<std::int64_t>(word);
  const auto& buyer = asker.buyer;
  const auto is_it = [&](const SaleOrder& order) {
    return (!buyer || order.buyer == *buyer) && (order.number == word || (id && order.id == *id));
  };
  auto found = find_recorded(sale, orders, buyer, word);
  if (found && is_it(*found)) return shown_to(asker, sale, orders, *found);
  const auto waiting = buyer ? sale.latest(*buyer).get() : offer.find_on_its_way(word);
  if (waiting && is_it(*waiting))
    return ShownOrder{.order = *waiting,
                      .to_shop = buyer ? std::nullopt : std::optional{ShopsView{}}};
  if (buyer) return std::nullopt;
  found = find_recorded(sale, orders, buyer, word);  // it may have come in meanwhile
  return found ? std::optional{shown_to(asker, sale, orders, *found)} : std::nullopt;
}

http::Response not_found(OfferedSale& sale, OrderStore& orders, const Asker& asker) {
  if (!asker.buyer) return http::problem(problems::no_order);
  const auto latest = sale.latest(*asker.buyer).get();
  const std::int64_t all = latest ? latest->n : 0;
  if (all < 2) return http::problem(problems::no_order);
  for (const auto& his : orders.totals(sale.rows_of(*asker.buyer), std::span{&*asker.buyer, 1}))
    if (his.orders >= all) return http::problem(problems::no_order);
  return not_yet("the database gets an order of this buyer soon");
}

http::Response not_yet(std::string_view detail) {
  auto response = http::problem(problems::busy, detail);
  http::add_retry_after(response, 1s);
  return response;
}

std::vector<ShownOrder> shown_to_shop(const std::string& rows, OrderStore& orders,
                                      const std::vector<SaleOrder>& some) {
  if (some.empty()) return {};
  std::vector<std::int64_t> ids;
  for (const auto& order : some) ids.push_back(order.id);
  auto money = orders.payments().find(rows, ids);
  auto reasons = orders.reasons(rows, ids);
  std::vector<ShownOrder> all;
  for (std::size_t i = 0; i < some.size(); ++i) {
    ShownOrder shown{.order = some[i], .is_recorded = true};
    if (const auto known = std::ranges::find(money, ids[i], [](auto& m) { return m.order.id; });
        known != money.end())
      shown.money = std::move(*known);
    if (shown.money) shown.order = shown.money->order;
    shown.to_shop = ShopsView{.reason = std::move(reasons.at(i)), .refunds = {}};
    if (!stands(shown.order.state) || (shown.money && shown.money->returned > 0))
      shown.to_shop->refunds = orders.payments().refunds_of(rows, ids[i]);
    all.push_back(std::move(shown));
  }
  return all;
}

ShownOrder shown_to(const Asker& asker, OfferedSale& sale, OrderStore& orders,
                    const SaleOrder& order) {
  const auto& rows = sale.rows_of(order.buyer);
  if (!asker.buyer) return shown_to_shop(rows, orders, {order}).front();
  ShownOrder shown{.order = order, .is_recorded = true};
  shown.money = orders.payments().find(rows, order.id);
  if (shown.money) shown.order = shown.money->order;
  return shown;
}

}  // namespace sluice::server
