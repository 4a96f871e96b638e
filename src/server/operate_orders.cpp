/// What operators look up in the database: orders, payments, messages.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/integer.hpp"
#include "server/operate_calls.hpp"
#include "server/operate_text.hpp"
#include "server/order_requests.hpp"
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

/// The id behind which a page begins.
std::optional<std::int64_t> id_of(const std::string& after) {
  return after.empty() ? std::optional<std::int64_t>{0} : parse_integer<std::int64_t>(after);
}

http::Response all_orders(Asked& asked, OrderStore& orders) {
  const auto read = [&](Sale& part, const std::string& after,
                        std::size_t most) -> Expected<Listed, http::Response> {
    const auto id = id_of(after);
    if (!id) return Unexpected{bad("'after' is the id of an order")};
    const auto found = orders.page(part.definition().name, *id, most);
    Listed listed;
    listed.items = jsons_of(asked, orders, part.definition().name, found);
    if (found.size() >= most) listed.next = fmt::to_string(found.back().id);
    return listed;
  };
  return page_over_parts(asked, "orders", read);
}

/// The latest order of a buyer, where the database does not have it yet.
std::optional<SaleOrder> latest_on_its_way(OrderStore& orders, OfferedSale& sale,
                                           const BuyerId& buyer) {
  auto latest = sale.latest(buyer).get();
  if (!latest || !orders.find(sale.rows_of(buyer), std::span{&latest->id, 1}).empty())
    return std::nullopt;
  return latest;
}

http::Response orders_of_buyer(Asked& asked, OrderStore& orders, const BuyerId& buyer) {
  auto& sale = asked.offer->sale();
  const auto after = id_of(asked.after);
  if (!after) return bad("'after' is the id of an order");
  const auto found = orders.orders_of(sale.rows_of(buyer), buyer, *after, asked.most);
  auto all = Json::array();
  for (const auto& order : jsons_of(asked, orders, sale.rows_of(buyer), found)) all.add(order);
  const bool is_last = found.size() < asked.most;
  if (is_last)
    if (const auto latest = latest_on_its_way(orders, sale, buyer))
      all.add(json_of(asked.sale(), {.order = *latest, .to_shop = ShopsView{}}));
  const auto next = is_last ? Json{} : Json{fmt::to_string(found.back().id)};
  return http::json(200, Json::object({{"orders", all}, {"next", next}}));
}

/// By number or id; else by buyer; else all of them.
http::Response list_orders(Asked& asked, const Orders& connect) {
  constexpr std::size_t longest_id = 128;
  const auto word = asked.request.query("q").value_or("");
  if (word.size() > longest_id) return bad("'q' has up to 128 bytes");
  auto& sale = asked.offer->sale();
  auto& orders = connect();
  if (word.empty()) return all_orders(asked, orders);
  if (const auto found = one_order(orders, sale, word)) {
    const auto shown =
        Json::array({jsons_of(asked, orders, sale.rows_of(found->buyer), {*found}).front()});
    return http::json(200, Json::object({{"orders", shown}, {"next", {}}}));
  }
  return orders_of_buyer(asked, orders, BuyerId{word});
}

// --- payments ---

/// "acme:evt_1": no provider has a colon in its name.
std::optional<PaymentPlace> payment_place_of(const std::string& after) {
  const auto colon = after.find(':');
  if (colon == after.npos) return std::nullopt;
  return PaymentPlace{after.substr(0, colon), after.substr(colon + 1)};
}

Json payment_json(const KeptPayment& kept) {
  return Json::object({{"provider", kept.payment.provider},
                       {"event", kept.payment.event},
                       {"order", kept.payment.order},
                       {"amount", kept.payment.amount},
                       {"currency", kept.payment.currency},
                       {"state", to_string(kept.state)},
                       {"note", cut(kept.note)},
                       {"at", millisecond_text(kept.received_at)}});
}

http::Response list_payments(Asked& asked, const Orders& connect) {
  using enum PaymentState;
  constexpr std::array states{waiting, asking, applied, returned, flagged};
  const auto word = asked.request.query("state").value_or("flagged");
  const auto* const state = std::ranges::find(states, word, [](auto s) { return to_string(s); });
  if (state == states.end()) return bad("'state' is waiting, asking, applied, returned or flagged");
  auto& payments = connect().payments();
  const auto read = [&](Sale& part, const std::string& after,
                        std::size_t most) -> Expected<Listed, http::Response> {
    const auto place = payment_place_of(after);
    if (!after.empty() && !place) return Unexpected{bad("'after' is `next` of the page before")};
    const auto found = payments.list(part.definition().name, *state, most, place);
    Listed listed;
    for (const auto& kept : found) listed.items.push_back(payment_json(kept));
    if (found.size() >= most) {
      const auto& last = found.back().payment;
      listed.next = fmt::format("{}:{}", last.provider, last.event);
    }
    return listed;
  };
  return page_over_parts(asked, "payments", read);
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

Json message_json(const OrderMessage& message) {
  return Json::object({{"order", fmt::to_string(message.order_id)},
                       {"seq", message.seq},
                       {"type", message.type},
                       {"at", millisecond_text(message.at)},
                       {"attempts", message.attempts},
                       {"state", message.state}});
}

http::Response list_messages(Asked& asked, const Orders& connect) {
  constexpr std::array<std::string_view, 3> states{"due", "done", "dead"};
  const auto state = asked.request.query("state").value_or("dead");
  if (std::ranges::find(states, state) == states.end()) return bad("'state' is due, done or dead");
  auto& payments = connect().payments();
  const auto read = [&](Sale& part, const std::string& after,
                        std::size_t most) -> Expected<Listed, http::Response> {
    const auto place = message_place_of(after);
    if (!place) return Unexpected{bad("'after' is `next` of the page before")};
    const auto found = payments.messages(part.definition().name, state, *place, most);
    Listed listed;
    for (const auto& message : found) listed.items.push_back(message_json(message));
    if (found.size() >= most)
      listed.next = fmt::format("{}:{}", found.back().order_id, found.back().seq);
    return listed;
  };
  return page_over_parts(asked, "messages", read);
}

http::Response replay_messages(Asked& asked, const Orders& connect) {
  std::int64_t replayed = 0;
  for (const auto* const part : asked.offer->sale().parts())
    replayed += connect().payments().replay_messages(part->definition().name);
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
