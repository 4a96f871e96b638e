/// What operators look up in the database: orders, payments, messages.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/integer.hpp"
#include "server/operate_calls.hpp"
#include "server/operate_text.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

using Orders = BlockingThreads::Orders;

constexpr const char* any_page = R"({"type":"object"})";

http::Response bad(std::string_view detail) {
  return http::problem(problems::bad_parameter, detail);
}

// --- orders ---

Json order_json(OrderStore& orders, const Sale& sale, const SaleOrder& order, bool is_recorded,
                bool with_money) {
  const auto& name = sale.definition().name;
  auto json = operators_json(name, order);
  json.add("recorded", is_recorded);
  if (!with_money || !is_recorded || !sale.definition().payment) return json;
  if (const auto money = orders.payments().find(name, order.id)) {
    json.add("returned", money->returned);
    json.add("due", money->due);
    json.add("pay_by", json_of(money->pay_by));
  }
  return json;
}

/// The one order with this number or id. An id is no number: that begins with a letter, a digit or
/// '-', and may be all digits where a shop wants it so; then both are looked up.
std::optional<SaleOrder> one_order(OrderStore& orders, const std::string& sale,
                                   const std::string& word) {
  if (auto found = orders.find_number(sale, word)) return found;
  const auto id = parse_integer<std::int64_t>(word);
  if (!id) return std::nullopt;
  auto found = orders.find(sale, std::span{&*id, 1});
  return found.empty() ? std::nullopt : std::optional{std::move(found.front())};
}

http::Response orders_page(OrderStore& orders, const Sale& sale,
                           const std::vector<SaleOrder>& found, std::size_t most,
                           const std::optional<SaleOrder>& on_its_way = {}) {
  auto all = Json::array();
  for (const auto& order : found) all.add(order_json(orders, sale, order, true, false));
  const bool is_last = found.size() < most;
  if (is_last && on_its_way) all.add(order_json(orders, sale, *on_its_way, false, false));
  const auto next = is_last ? Json{} : Json{fmt::to_string(found.back().id)};
  return http::json(200, Json::object({{"orders", all}, {"next", next}}));
}

/// The latest order of a buyer, where the database does not have it yet.
std::optional<SaleOrder> latest_on_its_way(OrderStore& orders, Sale& sale, const BuyerId& buyer) {
  auto latest = sale.latest(buyer).get();
  if (!latest || !orders.find(sale.definition().name, std::span{&latest->id, 1}).empty())
    return std::nullopt;
  return latest;
}

/// By number or id; else by buyer; else all of them.
http::Response list_orders(Asked& asked, const Orders& connect) {
  constexpr std::size_t longest_id = 128;
  const auto word = asked.request.query("q").value_or("");
  if (word.size() > longest_id) return bad("'q' has up to 128 bytes");
  const auto after = asked.after.empty() ? std::optional<std::int64_t>{0}
                                         : parse_integer<std::int64_t>(asked.after);
  if (!after) return bad("'after' is the id of an order");
  auto& sale = asked.offer->sale();
  auto& orders = connect();
  if (word.empty())
    return orders_page(orders, sale, orders.page(asked.sale(), *after, asked.most), asked.most);
  if (const auto found =
          orders.stock(asked.sale()) ? one_order(orders, asked.sale(), word) : std::nullopt) {
    const auto shown = Json::array({order_json(orders, sale, *found, true, true)});
    return http::json(200, Json::object({{"orders", shown}, {"next", {}}}));
  }
  const BuyerId buyer{word};
  return orders_page(orders, sale, orders.orders_of(asked.sale(), buyer, *after, asked.most),
                     asked.most, latest_on_its_way(orders, sale, buyer));
}

// --- payments ---

/// "acme:evt_1": no provider has a colon in its name.
std::optional<PaymentPlace> payment_place_of(const std::string& after) {
  const auto colon = after.find(':');
  if (colon == after.npos) return std::nullopt;
  return PaymentPlace{after.substr(0, colon), after.substr(colon + 1)};
}

http::Response list_payments(Asked& asked, const Orders& connect) {
  using enum PaymentState;
  constexpr std::array states{waiting, asking, applied, returned, flagged};
  const auto word = asked.request.query("state").value_or("flagged");
  const auto* const state = std::ranges::find(states, word, [](auto s) { return to_string(s); });
  if (state == states.end()) return bad("'state' is waiting, asking, applied, returned or flagged");
  const auto place = payment_place_of(asked.after);
  if (!asked.after.empty() && !place) return bad("'after' is `next` of the page before");
  const auto found = connect().payments().list(asked.sale(), *state, asked.most, place);
  auto all = Json::array();
  for (const auto& kept : found)
    all.add(Json::object({{"provider", kept.payment.provider},
                          {"event", kept.payment.event},
                          {"order", kept.payment.order},
                          {"amount", kept.payment.amount},
                          {"currency", kept.payment.currency},
                          {"state", to_string(kept.state)},
                          {"note", cut(kept.note)},
                          {"at", millisecond_text(kept.received_at)}}));
  const bool is_last = found.size() < asked.most;
  const auto next =
      is_last
          ? Json{}
          : Json{fmt::format("{}:{}", found.back().payment.provider, found.back().payment.event)};
  return http::json(200, Json::object({{"payments", all}, {"next", next}}));
}

// --- messages ---

/// "7598123:2": the id of an order, and the version that the message tells of.
std::optional<MessagePlace> message_place_of(const std::string& after) {
  if (after.empty()) return MessagePlace{};
  const auto colon = after.find(':');
  const auto order = parse_integer<std::int64_t>(std::string_view{after}.substr(0, colon));
  const auto seq = colon == after.npos
                       ? std::nullopt
                       : parse_integer<std::int64_t>(std::string_view{after}.substr(colon + 1));
  if (!order || !seq) return std::nullopt;
  return MessagePlace{*order, *seq};
}

http::Response list_messages(Asked& asked, const Orders& connect) {
  constexpr std::array<std::string_view, 3> states{"due", "done", "dead"};
  const auto state = asked.request.query("state").value_or("dead");
  if (std::ranges::find(states, state) == states.end()) return bad("'state' is due, done or dead");
  const auto place = message_place_of(asked.after);
  if (!place) return bad("'after' is `next` of the page before");
  const auto found = connect().payments().messages(asked.sale(), state, *place, asked.most);
  auto all = Json::array();
  for (const auto& message : found)
    all.add(Json::object({{"order", fmt::to_string(message.order_id)},
                          {"seq", message.seq},
                          {"type", message.type},
                          {"at", millisecond_text(message.at)},
                          {"attempts", message.attempts},
                          {"state", message.state}}));
  const bool is_last = found.size() < asked.most;
  const auto next =
      is_last ? Json{} : Json{fmt::format("{}:{}", found.back().order_id, found.back().seq)};
  return http::json(200, Json::object({{"messages", all}, {"next", next}}));
}

http::Response replay_messages(Asked& asked, const Orders& connect) {
  const auto replayed = connect().payments().replay_messages(asked.sale());
  return http::json(200, Json::object({{"replayed", replayed}}));
}

}  // namespace

std::vector<OperateCall> order_calls() {
  const std::string of_sale = "/v1/operate/sales/{sale}";
  const http::Parameter which{"q", "query", "A number, an id or a buyer; none: all orders"};
  const auto state = [](const char* states) {
    return http::Parameter{"state", "query", "The state that they are in", false, states};
  };
  return {{.method = "GET",
           .path = of_sale + "/orders",
           .operation = "console_orders",
           .summary = "Orders, by number, id or buyer",
           .has_pages = true,
           .parameters = {which},
           .answer = {200, "Orders, ids rising", any_page},
           .serve = list_orders},
          {.method = "GET",
           .path = of_sale + "/payments",
           .operation = "console_payments",
           .summary = "Payments in a state, as they came",
           .has_pages = true,
           .parameters = {state(R"({"type":"string","enum":["waiting","asking","applied",)"
                                R"("returned","flagged"],"default":"flagged"})")},
           .answer = {200, "Payments", any_page},
           .serve = list_payments},
          {.method = "GET",
           .path = of_sale + "/messages",
           .operation = "console_messages",
           .summary = "Messages about orders, in a state",
           .has_pages = true,
           .parameters = {state(R"({"type":"string","enum":["due","done","dead"],)"
                                R"("default":"dead"})")},
           .answer = {200, "Messages", any_page},
           .serve = list_messages},
          {.method = "POST",
           .path = of_sale + "/messages/replay",
           .operation = "replay_messages",
           .summary = "Makes all dead messages due again",
           .answer = {200, "How many there were", any_page},
           .serve = replay_messages}};
}

}  // namespace sluice::server
