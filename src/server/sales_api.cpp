#include "server/sales_api.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/instant.hpp"
#include "server/background.hpp"
#include "server/order_requests.hpp"
#include "server/problems.hpp"
#include "server/sales_text.hpp"
#include "sluice/when_all.hpp"

namespace sluice::server {
namespace {

std::vector<const http::ProblemType*> with_failures(std::vector<const http::ProblemType*> some) {
  some.insert(some.end(), {&problems::store_failed, &problems::effect_unknown, &problems::busy});
  return some;
}

}  // namespace

Expected<BuyerId, http::Response> SalesApi::buyer_of(const http::Request& request) const {
  return buyers_.who_asks(request, request.parameter("sale"));
}

void SalesApi::list(http::Request&& request, http::Responder&& respond) {
  if (auto refusal = limits_.stop(request)) return respond.send(std::move(*refusal));
  spawn(answer_list(std::move(respond)));
}

Task<void> SalesApi::answer_list(http::Responder respond) {
  http::Response response;
  try {
    const auto offers = shop_.all();
    std::vector<Task<BucketedStatus>> asked;
    for (const auto& offer : offers) asked.push_back(offer->sale().status_of_buckets());
    auto at_once = when_all(std::move(asked));
    const auto statuses = co_await at_once;
    Json all = Json::array();
    for (std::size_t i = 0; i < offers.size(); ++i)
      all.add(json_of(offers[i]->sale().definition(), statuses[i]));
    response = http::json(200, Json::object({{"sales", all}}));
  } catch (const std::exception& failure) {
    response = problem_of_read(failure);
  }
  respond.send(std::move(response));
}

void SalesApi::show(http::Request&& request, http::Responder&& respond) {
  if (auto refusal = limits_.stop(request)) return respond.send(std::move(*refusal));
  auto offer = offer_of(shop_, request);
  if (!offer) return respond.send(std::move(offer.error()));
  spawn(answer_status(*offer, std::move(respond)));
}

Task<void> SalesApi::answer_status(std::shared_ptr<Offer> offer, http::Responder respond) {
  http::Response response;
  try {
    const auto status = co_await offer->sale().status_of_buckets();
    response = http::json(200, json_of(offer->sale().definition(), status));
  } catch (const std::exception& failure) {
    response = problem_of_read(failure);
  }
  respond.send(std::move(response));
}

void SalesApi::buy(http::Request&& request, http::Responder&& respond) {
  auto buyer = buyer_of(request);
  if (!buyer) return respond.send(std::move(buyer.error()));
  auto key = key_of(request);
  if (!key) return respond.send(std::move(key.error()));
  auto body = body_of(request, {"units"});
  if (!body) return respond.send(std::move(body.error()));
  auto units = units_of(*body);
  if (!units) return respond.send(std::move(units.error()));
  auto offer = offer_of(shop_, request);
  if (!offer) return respond.send(std::move(offer.error()));
  if (auto gathering = (*offer)->sale().gather(*buyer))
    respond.at_end_of_turn([gathering = std::move(gathering)]() mutable { gathering.reset(); });
  // A field that stands twice is none: what stands before us may have looked at the other one.
  const bool has_ticket = request.count("Sluice-Ticket") == 1;
  spawn(answer_purchase({.offer = std::move(*offer),
                         .buyer = std::move(*buyer),
                         .wish = std::move(*key),
                         .units = units->value_or(1),
                         .ticket = std::string{has_ticket ? *request.field("Sluice-Ticket") : ""}},
                        std::move(respond)));
}

Task<void> SalesApi::answer_purchase(Purchase purchase, http::Responder respond) {
  http::Response response;
  try {
    auto serving = serve_at_counter(entrance_, std::move(purchase));
    response = co_await serving;
  } catch (const std::exception& failure) {
    response = problem_of(failure);
  }
  respond.send(std::move(response));
}

void SalesApi::show_order(http::Request&& request, http::Responder&& respond) {
  auto asker = asker_of(request, buyers_, shop_keys_);
  if (!asker) return respond.send(std::move(asker.error()));
  auto offer = offer_of(shop_, request);
  if (!offer) return respond.send(std::move(offer.error()));
  const auto asked = std::make_shared<const http::Request>(std::move(request));
  in_background(
      threads_, asker->subject, std::move(respond),
      [offer = *offer, asked, asker = *asker](OrderStore& orders) {
        const auto found = find_order(*offer, orders, asker, asked->parameter("order"));
        if (!found) return not_found(offer->sale(), orders, asker);
        return answer_of(*asked, offer->name(), *found);
      },
      (*offer)->name(), {}, {}, true);
}

void SalesApi::cancel(http::Request&& request, http::Responder&& respond) {
  auto asker = asker_of(request, buyers_, shop_keys_);
  if (!asker) return respond.send(std::move(asker.error()));
  auto body = body_of(request, {"reason"});
  if (!body) return respond.send(std::move(body.error()));
  auto reason = reason_of(*body);
  if (!reason) return respond.send(std::move(reason.error()));
  auto offer = offer_of(shop_, request);
  if (!offer) return respond.send(std::move(offer.error()));
  const auto asked = std::make_shared<const http::Request>(std::move(request));
  in_background(
      threads_, asker->subject, std::move(respond),
      [offer = *offer, asked, asker = *asker, reason = *reason](OrderStore& orders) {
        auto& sale = offer->sale();
        const auto found = find_order(*offer, orders, asker, asked->parameter("order"));
        if (!found) return not_found(sale, orders, asker);
        if (http::is_precondition_failed(*asked, tag_of(*found)))
          return http::problem(problems::other_version, {},
                               {{"order", json_of(offer->name(), *found)}});
        const auto ended = sale.cancel(orders, found->order.buyer, found->order.request, reason);
        if (!ended.order) return http::problem(problems::no_order);
        const auto now = shown_to(asker, sale, orders, *ended.order);
        const auto state = ended.order->state;
        if (state == OrderState::cancelled) return answer_of(*asked, offer->name(), now);
        const auto& why = stands(state) ? problems::order_paid : problems::order_ended;
        return http::problem(why, {}, {{"order", json_of(offer->name(), now)}});
      },
      (*offer)->name());
}

void SalesApi::add_routes(http::Routes& routes) {
  add_public_routes(routes);
  add_buyers_routes(routes);
}

http::Handler SalesApi::calls(void (SalesApi::*serve)(http::Request&&, http::Responder&&)) {
  return [this, serve](http::Request&& request, http::Responder&& respond) {
    (this->*serve)(std::move(request), std::move(respond));
  };
}

void SalesApi::add_public_routes(http::Routes& routes) {
  routes.add({.method = "GET",
              .path = "/v1/sales",
              .operation = "list_sales",
              .summary = "All sales, and how they stand",
              .answers = {{200, "The sales", sale_list_schema}},
              .problems = with_failures({&problems::too_many_requests}),
              .handler = calls(&SalesApi::list)});
  routes.add({.method = "GET",
              .path = "/v1/sales/{sale}",
              .operation = "show_sale",
              .summary = "How a sale stands",
              .answers = {{200, "The sale", sale_schema}},
              .problems = with_failures(
                  {&problems::no_sale, &problems::recovering, &problems::too_many_requests}),
              .handler = calls(&SalesApi::show)});
}

void SalesApi::add_buyers_routes(http::Routes& routes) {
  using namespace problems;
  const std::string credentials{Buyers::credentials};
  const auto credentials_or_shop = fmt::format("{} {}", credentials, ShopKeys::credentials);
  routes.add(
      {.method = "POST",
       .path = "/v1/sales/{sale}/orders",
       .operation = "buy",
       .summary = "Buy units, all or none; a repeat with the same key gets the same order",
       .parameters = {{"Idempotency-Key", "header",
                       "Names this wish to buy; the same with each repeat", true},
                      {"Sluice-Ticket", "header",
                       "The ticket of the waiting room, where the sale has one"}},
       .request = buy_schema,
       .answers = {{201, "The order", order_schema},
                   {200, "The order of this key, again", order_schema}},
       .problems = with_failures({&bad_body, &no_idempotency_key, &unknown_buyer, &not_yours,
                                  &no_sale, &not_started, &not_inside, &sold_out, &not_enough,
                                  &already_bought, &too_many_units, &full, &order_ended, &closed,
                                  &other_units, &recovering, &too_many_requests}),
       .credentials = credentials,
       .handler = calls(&SalesApi::buy)});
  routes.add(
      {.method = "GET",
       .path = "/v1/sales/{sale}/orders/{order}",
       .operation = "show_order",
       .summary = "One of the buyer's orders, by id or number; with a key of the shop, any",
       .answers = {{200, "The order", order_schema}, {304, "As If-None-Match has it", {}}},
       .problems = with_failures({&unknown_buyer, &unknown_key, &not_allowed, &not_yours, &no_sale,
                                  &no_order, &recovering, &too_many_requests, &database_failed}),
       .credentials = credentials_or_shop,
       .handler = calls(&SalesApi::show_order)});
  routes.add(
      {.method = "POST",
       .path = "/v1/sales/{sale}/orders/{order}/cancel",
       .operation = "cancel_order",
       .summary = "Cancel an order before it is paid; its units return to the sale; with a "
                  "key of the shop, any",
       .request = cancel_schema,
       .answers = {{200, "The order as it stands now", order_schema}},
       .problems = with_failures({&bad_body, &unknown_buyer, &unknown_key, &not_allowed, &not_yours,
                                  &no_sale, &no_order, &other_version, &order_paid, &order_ended,
                                  &recovering, &too_many_requests, &database_failed}),
       .credentials = credentials_or_shop,
       .handler = calls(&SalesApi::cancel)});
}

}  // namespace sluice::server
