/// Orders, as operators list them, look at one, and take units back.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/integer.hpp"
#include "http/text.hpp"
#include "server/operate_calls.hpp"
#include "server/operate_text.hpp"
#include "server/orders_api.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

using Orders = BlockingThreads::Orders;

constexpr const char* any_page = R"({"type":"object"})";
/// Orders of a part of a sale, the latest, that are looked through for a part of a word.
constexpr std::size_t looked_through = 2000;
constexpr const char* what_is_found =
    "A number, also in small letters, an id or a buyer; else the end of a number or a part of a "
    "buyer's name, among the latest 2,000 orders (of each bucket). None: all orders";

// --- orders ---

std::vector<Json> jsons_of(const Asked& asked, OrderStore& orders, const std::string& rows,
                           const std::vector<SaleOrder>& some) {
  std::vector<Json> all;
  for (const auto& shown : shown_to_shop(rows, orders, some))
    all.push_back(json_of(asked.sale(), shown));
  return all;
}

bool is_same_letter(char a, char b) { return http::lower(a) == http::lower(b); }

/// As numbers of the sale begin, whatever letters it was typed in.
std::string spelled(const std::string& word, const std::string& type) {
  const bool is_so = http::same_word(std::string_view{word}.substr(0, type.size()), type);
  return is_so ? type + word.substr(type.size()) : word;
}

/// The one order with this number or id. An id is no number: that begins with a letter, a digit or
/// '-', and may be all digits where a shop wants it so; then both are looked up.
std::optional<SaleOrder> one_order(OrderStore& orders, OfferedSale& sale, const std::string& word) {
  const auto id = parse_integer<std::int64_t>(word);
  for (const auto* const part : sale.parts()) {
    const auto& rows = part->definition().name;
    if (!orders.stock(rows)) continue;
    const auto number = spelled(word, part->definition().number_type);
    if (auto found = orders.find_number(rows, number)) return found;
    if (!id) continue;
    auto found = orders.find(rows, std::span{&*id, 1});
    if (!found.empty()) return std::move(found.front());
  }
  return std::nullopt;
}

/// Whether a number ends with it, or a buyer's name has it within, in whatever letters.
bool is_like(const SaleOrder& order, std::string_view word) {
  const std::string_view number = order.number;
  const auto end = number.substr(number.size() - std::min(number.size(), word.size()));
  return http::same_word(end, word) ||
         !std::ranges::search(order.buyer.value, word, is_same_letter).empty();
}

/// Which orders a list has, the newest first.
Expected<OrderQuery, http::Response> query_of(const Asked& asked) {
  OrderQuery query;
  if (const auto state = asked.request.query("state"); state && !state->empty()) {
    query.state = order_state_named(*state);
    if (!query.state)
      return Unexpected{
          wrong_parameter("'state' is awaiting, paid, cancelled, expired, refunding or refunded")};
  }
  if (asked.after.empty()) return query;
  const auto before = parse_integer<std::int64_t>(asked.after);
  if (!before) return Unexpected{wrong_parameter("'after' is the id of an order")};
  query.before = *before;
  return query;
}

/// The newest of all parts: ids begin with the time. `like` is a word that they have, of which the
/// latest of each part alone are looked through.
http::Response newest_orders(Asked& asked, OrderStore& orders, const OrderQuery& query,
                             const std::vector<std::string>& all_rows,
                             const std::string& like = {}) {
  std::vector<std::pair<std::int64_t, Json>> found;
  for (const auto& rows : all_rows) {
    auto some = orders.newest(rows, like.empty() ? query : OrderQuery{.before = query.before},
                              like.empty() ? asked.most + 1 : looked_through);
    const auto is_other = [&](const SaleOrder& order) {
      return !is_like(order, like) || (query.state && order.state != *query.state);
    };
    if (!like.empty()) std::erase_if(some, is_other);
    if (some.size() > asked.most + 1) some.resize(asked.most + 1);
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

std::vector<std::string> all_rows_of(OfferedSale& sale) {
  std::vector<std::string> rows;
  for (const auto* const part : sale.parts()) rows.push_back(part->definition().name);
  return rows;
}

/// By number or id; else by buyer; else by what they have of it; all of them without a word.
http::Response list_orders(Asked& asked, const Orders& connect) {
  constexpr std::size_t longest_id = 128;
  const auto word = asked.request.query("q").value_or("");
  if (word.size() > longest_id) return wrong_parameter("'q' has up to 128 bytes");
  auto query = query_of(asked);
  if (!query) return std::move(query.error());
  auto& sale = asked.offer->sale();
  auto& orders = connect();
  if (word.empty()) return newest_orders(asked, orders, *query, all_rows_of(sale));
  if (const auto found = one_order(orders, sale, word)) {
    const auto shown =
        Json::array({jsons_of(asked, orders, sale.rows_of(found->buyer), {*found}).front()});
    return http::json(200, Json::object({{"orders", shown}, {"next", {}}}));
  }
  query->buyer = BuyerId{word};
  if (!orders.newest(sale.rows_of({word}), *query, 1).empty())
    return newest_orders(asked, orders, *query, {sale.rows_of({word})});
  if (asked.after.empty() && !query->state) {
    if (const auto latest = latest_on_its_way(orders, sale, {word}))
      return on_its_way(asked, *latest);
    const auto number = spelled(word, sale.definition().number_type);
    if (const auto waiting = asked.offer->find_on_its_way(number))
      return on_its_way(asked, *waiting);
  }
  return newest_orders(asked, orders, *query, all_rows_of(sale), word);
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

/// The dead letter of an order that the database has refused, among the first thousand.
Json letter_of(OfferedSale& sale, const SaleOrder& order) {
  auto& part = sale.part_of(order.buyer);
  std::string after;
  for (int page = 0; page < 10; ++page) {
    const auto letters = part.dead_letters(after, 100).get();
    for (const auto& letter : letters)
      if (letter.order && letter.order->id == order.id)
        return Json::object(
            {{"id", text_outside(sale, part, letter.id)}, {"reason", cut(letter.reason)}});
    if (letters.size() < 100) break;
    after = letters.back().id;
  }
  return {};
}

http::Response show_order(Asked& asked, const Orders& connect) {
  auto& orders = connect();
  auto& sale = asked.offer->sale();
  const auto found = find_order(*asked.offer, orders, {}, asked.request.parameter("order"));
  if (!found) return http::problem(problems::no_order);
  auto json = json_of(asked.sale(), *found);
  json.add("dead_letter", found->is_recorded ? Json{} : letter_of(sale, found->order));
  add_details(json, orders, sale.rows_of(found->order.buyer), found->order);
  auto response = http::json(200, json);
  if (found->is_recorded) response.add("ETag", tag_of(*found));
  return response;
}

http::Response refund_order(Asked& asked, const Orders& connect) {
  auto key = key_of(asked.request);
  if (!key) return std::move(key.error());
  TakenBack taken;
  auto response = take_back(*asked.offer, connect(),
                            {.request = std::move(asked.request),
                             .asker = {},
                             .key = std::move(key->value),
                             .units = asked.count("units"),
                             .reason = asked.text("reason")},
                            taken);
  const auto& terms = asked.offer->sale().definition().payment;
  asked.found = {.sale = {},
                 .order = std::move(taken.order),
                 .amount = taken.refund,
                 .currency = terms ? terms->currency : std::string{}};
  return response;
}

}  // namespace

std::vector<OperateCall> order_calls() {
  using Kind = BodyMember::Kind;
  const std::string of_sale = "/v1/operate/sales/{sale}";
  const http::Parameter which{"q", "query", what_is_found};
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
           .operation = "take_back_units",
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
