/// Orders, as operators list them, look at one, and take units back.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/integer.hpp"
#include "server/operate_calls.hpp"
#include "server/operate_text.hpp"
#include "server/orders_api.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

using Orders = BlockingThreads::Orders;

constexpr const char* any_page = R"({"type":"object"})";

http::Response bad(std::string_view detail) {
  return http::problem(problems::bad_parameter, detail);
}

// --- orders ---

std::vector<Json> jsons_of(const Asked& asked, OrderStore& orders, const std::string& rows,
                           const std::vector<SaleOrder>& some) {
  std::vector<Json> all;
  for (const auto& shown : shown_to_shop(rows, orders, some))
    all.push_back(json_of(asked.sale(), shown));
  return all;
}

/// The one order with this number or id. An id is no number: that begins with a letter, a digit or
/// '-', and may be all digits where a shop wants it so; then both are looked up.
std::optional<SaleOrder> one_order(OrderStore& orders, OfferedSale& sale, const std::string& word) {
  const auto id = parse_integer<std::int64_t>(word);
  for (const auto* const part : sale.parts()) {
    const auto& rows = part->definition().name;
    if (!orders.stock(rows)) continue;
    if (auto found = orders.find_number(rows, word)) return found;
    if (!id) continue;
    auto found = orders.find(rows, std::span{&*id, 1});
    if (!found.empty()) return std::move(found.front());
  }
  return std::nullopt;
}

/// Which orders a list has, the newest first.
Expected<OrderQuery, http::Response> query_of(const Asked& asked) {
  OrderQuery query;
  if (const auto state = asked.request.query("state"); state && !state->empty()) {
    query.state = order_state_named(*state);
    if (!query.state)
      return Unexpected{
          bad("'state' is awaiting, paid, cancelled, expired, refunding or refunded")};
  }
  if (asked.after.empty()) return query;
  const auto before = parse_integer<std::int64_t>(asked.after);
  if (!before) return Unexpected{bad("'after' is the id of an order")};
  query.before = *before;
  return query;
}

/// The newest of all parts: ids begin with the time.
http::Response newest_orders(Asked& asked, OrderStore& orders, const OrderQuery& query,
                             const std::vector<std::string>& all_rows) {
  std::vector<std::pair<std::int64_t, Json>> found;
  for (const auto& rows : all_rows) {
    const auto some = orders.newest(rows, query, asked.most + 1);
    const auto jsons = jsons_of(asked, orders, rows, some);
    for (std::size_t i = 0; i < some.size(); ++i) found.emplace_back(some[i].id, jsons[i]);
  }
  std::ranges::sort(found, std::greater{}, [](const auto& one) { return one.first; });
  const bool is_last = found.size() <= asked.most;
  if (!is_last) found.resize(asked.most);
  auto all = Json::array();
  for (const auto& [id, json] : found) all.add(json);
  return http::json(
      200, Json::object({{"orders", all},
                         {"next", is_last ? Json{} : Json{fmt::to_string(found.back().first)}}}));
}

/// The latest order of a buyer, where the database does not have it yet.
std::optional<SaleOrder> latest_on_its_way(OrderStore& orders, OfferedSale& sale,
                                           const BuyerId& buyer) {
  auto latest = sale.latest(buyer).get();
  if (!latest || !orders.find(sale.rows_of(buyer), std::span{&latest->id, 1}).empty())
    return std::nullopt;
  return latest;
}

/// One order that the database does not have yet.
http::Response on_its_way(const Asked& asked, const SaleOrder& order) {
  const auto shown = json_of(asked.sale(), {.order = order, .to_shop = ShopsView{}});
  return http::json(200, Json::object({{"orders", Json::array({shown})}, {"next", {}}}));
}

/// By number or id; else by buyer; else all of them.
http::Response list_orders(Asked& asked, const Orders& connect) {
  constexpr std::size_t longest_id = 128;
  const auto word = asked.request.query("q").value_or("");
  if (word.size() > longest_id) return bad("'q' has up to 128 bytes");
  auto query = query_of(asked);
  if (!query) return std::move(query.error());
  auto& sale = asked.offer->sale();
  auto& orders = connect();
  if (word.empty()) {
    std::vector<std::string> rows;
    for (const auto* const part : sale.parts()) rows.push_back(part->definition().name);
    return newest_orders(asked, orders, *query, rows);
  }
  if (const auto found = one_order(orders, sale, word)) {
    const auto shown =
        Json::array({jsons_of(asked, orders, sale.rows_of(found->buyer), {*found}).front()});
    return http::json(200, Json::object({{"orders", shown}, {"next", {}}}));
  }
  query->buyer = BuyerId{word};
  if (asked.after.empty() && !query->state &&
      orders.newest(sale.rows_of({word}), *query, 1).empty())
    if (const auto latest = latest_on_its_way(orders, sale, {word}))
      return on_its_way(asked, *latest);
  return newest_orders(asked, orders, *query, {sale.rows_of({word})});
}

// --- one order ---

/// What has happened to an order, the latest first.
class OrderEvents {
 public:
  void add(WallTime at, std::string_view event, const Json& data) {
    events_.emplace_back(
        at, Json::object({{"at", millisecond_text(at)}, {"event", event}, {"data", data}}));
  }
  Json list() {
    std::ranges::stable_sort(events_, std::greater{}, [](const auto& one) { return one.first; });
    auto all = Json::array();
    for (const auto& [at, json] : events_) all.add(json);
    return all;
  }

 private:
  std::vector<std::pair<WallTime, Json>> events_;
};

/// What the database has of an order beside its row.
void add_details(Json& json, OrderStore& orders, const std::string& rows, const SaleOrder& order) {
  auto payments = Json::array();
  auto messages = Json::array();
  OrderEvents events;
  events.add(order.issued_at, "order.issued", Json::object({{"units", order.units}}));
  for (const auto& kept : orders.payments().payments_of(rows, order)) {
    payments.add(json_of(kept));
    events.add(kept.received_at, "payment.received",
               Json::object({{"amount", kept.payment.amount},
                             {"currency", kept.payment.currency},
                             {"state", to_string(kept.state)},
                             {"note", cut(kept.note)}}));
  }
  auto told = orders.payments().messages_of(rows, order.id);
  for (const auto& message : told) events.add(message.at, message.type, Json::raw(message.data));
  std::ranges::reverse(told);
  for (const auto& message : told) messages.add(json_of(message));
  json.add("payments", payments);
  json.add("messages", messages);
  json.add("history", events.list());
}

http::Response show_order(Asked& asked, const Orders& connect) {
  auto& orders = connect();
  auto& sale = asked.offer->sale();
  const auto found = find_order(*asked.offer, orders, {}, asked.request.parameter("order"));
  if (!found) return http::problem(problems::no_order);
  auto json = json_of(asked.sale(), *found);
  add_details(json, orders, sale.rows_of(found->order.buyer), found->order);
  auto response = http::json(200, json);
  if (found->is_recorded) response.add("ETag", tag_of(*found));
  return response;
}

http::Response refund_order(Asked& asked, const Orders& connect) {
  auto key = key_of(asked.request);
  if (!key) return std::move(key.error());
  return take_back(*asked.offer, connect(),
                   {.request = std::move(asked.request),
                    .asker = {},
                    .key = std::move(key->value),
                    .units = asked.count("units"),
                    .reason = asked.text("reason")});
}

}  // namespace

std::vector<OperateCall> order_calls() {
  using Kind = BodyMember::Kind;
  const std::string of_sale = "/v1/operate/sales/{sale}";
  const http::Parameter which{"q", "query", "A number, an id or a buyer; none: all orders"};
  const http::Parameter state{"state", "query", "The state that they are in; none: any", false,
                              R"({"type":"string","enum":["awaiting","paid","cancelled",)"
                              R"("expired","refunding","refunded"]})"};
  return {{.method = "GET",
           .path = of_sale + "/orders",
           .operation = "console_orders",
           .summary = "Orders, the newest first; by number, id, buyer or state",
           .has_pages = true,
           .parameters = {which, state},
           .answer = {200, "Orders, ids falling", any_page},
           .serve = list_orders},
          {.method = "GET",
           .path = of_sale + "/orders/{order}",
           .operation = "console_order",
           .summary = "An order, by number or id, with its payments, messages and history",
           .answer = {200, "The order", order_details_schema},
           .problems = {&problems::no_order},
           .serve = show_order},
          {.method = "POST",
           .path = of_sale + "/orders/{order}/refund",
           .operation = "console_refund",
           .summary = "Takes units of an order back, all without 'units', also of a paid one: they "
                      "return to the sale, and their price to the buyer; once for each key",
           .body = {{"units", Kind::count, false}, {"reason", Kind::words}},
           .is_final = true,
           .parameters = {{"Idempotency-Key", "header",
                           "Names this wish; the same with each repeat", true},
                          {"If-Match", "header", "The ETag of the order that was looked at"}},
           .answer = {200, "The order as it stands now, and what was taken back", order_schema},
           .problems = problems_of_take_back(),
           .serve = refund_order}};
}

}  // namespace sluice::server
