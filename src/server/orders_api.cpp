#include "server/orders_api.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "base/integer.hpp"
#include "server/background.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t longest_page = 500;
constexpr std::size_t usual_page = 100;
/// Of a state that few orders have, one request looks at no more than these.
constexpr std::size_t most_looked_at = 10'000;

/// What a page is to have.
struct PageWish {
  std::optional<OrderState> state;
  std::vector<std::int64_t> after;  ///< an id of each part of the sale; none: the first page
  std::size_t most = usual_page;
};

Unexpected<http::Response> refuse_parameter(std::string_view what) {
  return Unexpected{http::problem(problems::bad_parameter, what)};
}

/// "7598123", or "7598123.-1.7598125" of a sale with three buckets: each has orders on their way of
/// its own. Empty: it is none of these.
std::optional<std::vector<std::int64_t>> places_of(std::string_view text) {
  std::vector<std::int64_t> places;
  for (bool has_more = true; has_more;) {
    const auto dot = text.find('.');
    const auto place = parse_integer<std::int64_t>(text.substr(0, dot));
    if (!place || *place < -1) return std::nullopt;
    places.push_back(*place);
    has_more = dot != text.npos;
    if (has_more) text.remove_prefix(dot + 1);
  }
  return places;
}

Expected<PageWish, http::Response> page_wish_of(const http::Request& request) {
  PageWish wish;
  if (const auto word = request.query("state"); word && !word->empty()) {
    wish.state = order_state_named(*word);
    if (!wish.state)
      return refuse_parameter(
          "'state' is awaiting, cancelled, paid, expired, refunding or refunded");
  }
  if (const auto word = request.query("after"); word && !word->empty()) {
    auto after = places_of(*word);
    if (!after) return refuse_parameter("'after' is what the last page has given");
    wish.after = std::move(*after);
  }
  if (const auto word = request.query("most"); word && !word->empty()) {
    const auto most = parse_integer<std::size_t>(*word);
    if (!most || *most < 1 || *most > longest_page)
      return refuse_parameter("'most' is a whole number from 1 to 500");
    wish.most = *most;
  }
  return wish;
}

struct OrderPage {
  std::vector<ShownOrder> orders;
  std::vector<std::int64_t> after;  ///< where the next one begins, in each part of the sale
  std::size_t looked_at = 0;
  bool has_more = false;
};

/// Nothing above `up_to`: of what is there, orders may be missing that are on their way.
std::vector<SaleOrder> read_part(const std::string& rows, OrderStore& orders, const PageWish& wish,
                                 std::int64_t up_to, std::int64_t& after, OrderPage& page) {
  std::vector<SaleOrder> read;
  while (page.looked_at < most_looked_at) {
    const auto some = orders.page(rows, after, longest_page);
    for (const auto& order : some) {
      if (order.id > up_to) return read;
      if (page.orders.size() + read.size() == wish.most) {
        page.has_more = true;
        return read;
      }
      after = order.id;
      if (!wish.state || order.state == *wish.state) read.push_back(order);
    }
    if (some.size() < longest_page) return read;
    page.looked_at += some.size();
  }
  page.has_more = true;
  return read;
}

/// One part after another.
OrderPage read_page(OfferedSale& sale, OrderStore& orders, const PageWish& wish) {
  const auto parts = sale.parts();
  OrderPage page{.orders = {}, .after = wish.after};
  page.after.resize(parts.size(), -1);
  for (std::size_t i = 0; i < parts.size() && !page.has_more; ++i) {
    const auto up_to = parts[i]->recorded_up_to().get();
    const auto& rows = parts[i]->definition().name;
    const auto read = read_part(rows, orders, wish, up_to, page.after[i], page);
    std::ranges::move(shown_to_shop(rows, orders, read), std::back_inserter(page.orders));
  }
  return page;
}

http::Response answer_of(const http::Request& request, const std::string& sale,
                         const OrderPage& page) {
  auto list = Json::array();
  for (const auto& order : page.orders) list.add(json_of(sale, order));
  const auto after = fmt::format("{}", fmt::join(page.after, "."));
  auto response = http::json(200, Json::object({{"orders", list}, {"after", after}}));
  if (page.has_more) http::add_next_page(response, request, after);
  return response;
}

http::Response with_shown(const http::ProblemType& type, std::string_view sale,
                          const ShownOrder& shown) {
  return http::problem(type, {}, {{"order", json_of(sale, shown)}});
}

/// Empty: it may be done, or was done under this key. Whoever repeats a request sends the tag of
/// before, so the key is looked up first: more units than an order can have change nothing.
bool is_other_version(OfferedSale& sale, OrderStore& orders, const TakeBack& wish,
                      const ShownOrder& found) {
  if (!http::is_precondition_failed(wish.request, tag_of(found))) return false;
  const auto& order = found.order;
  const auto known =
      sale.cancel_units(orders, order.buyer, order.request, order.units + 1, wish.key, {});
  return known.outcome != UnitsResult::Outcome::repeated &&
         known.outcome != UnitsResult::Outcome::other_units;
}

}  // namespace

std::vector<const http::ProblemType*> problems_of_take_back() {
  using namespace problems;
  return {&no_idempotency_key, &no_order,     &order_ended, &fewer_units,
          &other_version,      &other_refund, &recovering,  &busy};
}

http::Response take_back(Offer& offer, OrderStore& orders, const TakeBack& wish, TakenBack& taken) {
  using Outcome = UnitsResult::Outcome;
  auto& sale = offer.sale();
  const auto& name = offer.name();
  const auto found = find_order(offer, orders, wish.asker, wish.request.parameter("order"));
  if (!found) return http::problem(problems::no_order);
  taken.order = found->order.number;
  if (!found->is_recorded) return not_yet("the database gets this order soon");
  if (is_other_version(sale, orders, wish, *found))
    return with_shown(problems::other_version, name, *found);
  const auto& order = found->order;
  const auto result =
      sale.cancel_units(orders, order.buyer, order.request, wish.units, wish.key, wish.reason);
  const auto now = shown_to(wish.asker, sale, orders, order);
  if (result.outcome == Outcome::unknown) return http::problem(problems::no_order);
  if (result.outcome == Outcome::ended) return with_shown(problems::order_ended, name, now);
  if (result.outcome == Outcome::too_many) return with_shown(problems::fewer_units, name, now);
  if (result.outcome == Outcome::other_units) return with_shown(problems::other_refund, name, now);
  taken.refund = result.refund;
  auto json = json_of(name, now);
  json.add("taken_back", Json::object({{"units", result.units}, {"refund", result.refund}}));
  auto response = http::json(200, json);
  response.add("ETag", tag_of(now));
  return response;
}

void OrdersApi::list(http::Request&& request, http::Responder&& respond) {
  const auto asker = asker_of(request, shop_keys_);
  if (!asker) return respond.send(http::Response{asker.error()});
  const auto wish = page_wish_of(request);
  if (!wish) return respond.send(http::Response{wish.error()});
  auto offer = offer_of(shop_, request);
  if (!offer) return respond.send(std::move(offer.error()));
  if (const auto places = wish->after.size(); places > 0)
    if (places != (*offer)->sale().parts().size())
      return respond.send(
          refuse_parameter("'after' is what a page of this sale has given").error());
  const auto asked = std::make_shared<const http::Request>(std::move(request));
  in_background(
      threads_, asker->subject, std::move(respond),
      [offer = *offer, asked, wish = *wish](OrderStore& orders) {
        const auto page = read_page(offer->sale(), orders, wish);
        return answer_of(*asked, offer->name(), page);
      },
      (*offer)->name(), {}, {}, true);
}

void OrdersApi::refund(http::Request&& request, http::Responder&& respond) {
  auto asker = asker_of(request, shop_keys_);
  if (!asker) return respond.send(std::move(asker.error()));
  auto key = key_of(request);
  if (!key) return respond.send(std::move(key.error()));
  auto body = body_of(request, {"units", "reason"});
  if (!body) return respond.send(std::move(body.error()));
  auto units = units_of(*body);
  if (!units) return respond.send(std::move(units.error()));
  auto reason = reason_of(*body);
  if (!reason) return respond.send(std::move(reason.error()));
  auto offer = offer_of(shop_, request);
  if (!offer) return respond.send(std::move(offer.error()));
  const auto subject = asker->subject;
  const auto wish = std::make_shared<const TakeBack>(TakeBack{.request = std::move(request),
                                                              .asker = std::move(*asker),
                                                              .key = std::move(key->value),
                                                              .units = units->value_or(0),
                                                              .reason = std::move(*reason)});
  in_background(
      threads_, subject, std::move(respond),
      [offer = *offer, wish](OrderStore& orders) {
        TakenBack taken;
        return take_back(*offer, orders, *wish, taken);
      },
      (*offer)->name());
}

void OrdersApi::add_routes(http::Routes& routes) {
  using namespace problems;
  if (shop_keys_.is_empty()) return;
  const std::string credentials{ShopKeys::credentials};
  const auto in_query = [](const char* name, const char* what) {
    return http::Parameter{name, "query", what};
  };
  routes.add({.method = "GET",
              .path = "/v1/sales/{sale}/all-orders",
              .operation = "list_orders",
              .summary =
                  "Orders that the database has, of any buyer, ids rising (in each bucket); page "
                  "after page "
                  "as Link has it, none is passed over that comes in meanwhile",
              .parameters = {in_query("state", "Those of this state alone; a page may be short"),
                             in_query("after", "What the last page has given"),
                             in_query("most", "At most so many, 1 to 500; 100 without it")},
              .answers = {{200, "A page", order_list_schema}},
              .problems = {&bad_parameter, &unknown_key, &not_allowed, &no_sale, &recovering,
                           &too_many_requests, &database_failed, &store_failed, &busy},
              .credentials = credentials,
              .handler = [this](http::Request&& request, http::Responder&& respond) {
                list(std::move(request), std::move(respond));
              }});
  routes.add(
      {.method = "POST",
       .path = "/v1/sales/{sale}/orders/{order}/refund",
       .operation = "refund_order",
       .summary = "Take units of an order back, also of a paid one: they return to the "
                  "sale, and their price to the buyer; once for each key",
       .parameters = {{"Idempotency-Key", "header", "Names this wish; the same with each repeat",
                       true}},
       .request = refund_schema,
       .answers = {{200, "The order as it stands now, and what was taken back under this key",
                    order_schema}},
       .problems = {&bad_body, &no_idempotency_key, &unknown_key, &not_allowed, &no_sale, &no_order,
                    &order_ended, &fewer_units, &other_version, &other_refund, &recovering,
                    &too_many_requests, &database_failed, &store_failed, &effect_unknown, &busy},
       .credentials = credentials,
       .handler = [this](http::Request&& request, http::Responder&& respond) {
         refund(std::move(request), std::move(respond));
       }});
}

}  // namespace sluice::server
