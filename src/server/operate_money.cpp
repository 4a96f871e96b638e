/// What operators see and do about money and messages: payments that paid nothing, refunds, what
/// was not delivered, totals.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/instant.hpp"
#include "base/integer.hpp"
#include "sale/payment_terms.hpp"
#include "server/operate_calls.hpp"
#include "server/operate_text.hpp"
#include "server/problems.hpp"
#include "server/sales_text.hpp"
#include "sluice/order_messages.hpp"
#include "sluice/payment_provider.hpp"

namespace sluice::server {
namespace {

using Orders = BlockingThreads::Orders;

constexpr const char* any_figures = R"({"type":"object"})";
constexpr const char* money_schema =
    R"({"type":"object","required":["money"],"properties":{"money":{"type":"array","items":{)"
    R"("type":"object","required":["day","provider","currency","payments","paid","refunds",)"
    R"("given_back","settled","net"]}}}})";
constexpr const char* totals_schema =
    R"({"type":"object","required":["days","currency","money"],"properties":{"days":{)"
    R"("type":"array","items":{"type":"object","required":["day","state","orders","units",)"
    R"("amount","returned","returned_amount"]}},"currency":{"type":["string","null"]},)"
    R"("money":{"type":"array"}}})";

Unexpected<http::Response> bad_after() {
  return Unexpected{wrong_parameter("'after' is `next` of the page before")};
}

// --- payments ---

/// "acme:evt_1": no provider has a colon in its name.
std::optional<PaymentPlace> payment_place_of(const std::string& after) {
  const auto colon = after.find(':');
  if (colon == after.npos) return std::nullopt;
  return PaymentPlace{after.substr(0, colon), after.substr(colon + 1)};
}

Expected<PaymentState, http::Response> payment_state_in(const Asked& asked) {
  using enum PaymentState;
  constexpr std::array states{waiting, asking,    applied,  returned,
                              flagged, refunding, refunded, settled};
  const auto word = asked.request.query("state").value_or("flagged");
  const auto* const state = std::ranges::find(states, word, [](auto s) { return to_string(s); });
  if (state != states.end()) return *state;
  return Unexpected{wrong_parameter(
      "'state' is waiting, asking, applied, returned, flagged, refunding, refunded or "
      "settled")};
}

Expected<Listed, http::Response> page_of_payments(OrderPayments& payments, const std::string& rows,
                                                  PaymentState state, const std::string& after,
                                                  std::size_t most) {
  const auto place = payment_place_of(after);
  if (!after.empty() && !place) return bad_after();
  const auto found = payments.list(rows, state, most, place);
  Listed listed;
  for (const auto& kept : found) listed.items.push_back(json_of(kept));
  if (found.size() >= most) {
    const auto& last = found.back().payment;
    listed.next = fmt::format("{}:{}", last.provider, last.event);
  }
  return listed;
}

http::Response list_payments(Asked& asked, const Orders& connect) {
  const auto state = payment_state_in(asked);
  if (!state) return state.error();
  auto& payments = connect().payments();
  const auto read = [&](Sale& part, const std::string& after, std::size_t most) {
    return page_of_payments(payments, part.definition().name, *state, after, most);
  };
  return page_over_parts(asked, "payments", read);
}

/// Of sales, too, that nobody here knows.
http::Response list_all_payments(Asked& asked, const Orders& connect) {
  const auto state = payment_state_in(asked);
  if (!state) return state.error();
  const auto page = page_of_payments(connect().payments(), {}, *state, asked.after, asked.most);
  if (!page) return page.error();
  auto all = Json::array();
  for (const auto& item : page->items) all.add(item);
  return http::json(200, Json::object({{"payments", all},
                                       {"next", page->next.empty() ? Json{} : Json{page->next}}}));
}

/// If-Match, where it stands, names the state in which the operator saw what he settles.
bool is_seen(const Asked& asked, std::string_view state) {
  return !http::is_precondition_failed(asked.request, http::entity_tag(state));
}
const http::Parameter if_match{"If-Match", "header",
                               "The state that it was seen in, as \"flagged\" with its quotes"};

http::Response settle_payment(Asked& asked, const Orders& connect, Store& store, PaymentState to) {
  const PaymentPlace place{asked.request.parameter("provider"), asked.request.parameter("event")};
  const auto may = [&](PaymentState state) { return is_seen(asked, to_string(state)); };
  const auto& why = asked.text("reason");
  const auto settled = to == PaymentState::settled
                           ? settle_outside(store, connect(), place, asked.by.id, why, may)
                           : connect().payments().settle_payment(place, to, asked.by.id, why, may);
  if (!settled.payment) return http::problem(problems::no_payment);
  const auto& paid = settled.payment->payment;
  asked.found = {paid.sale, paid.order, paid.amount, paid.currency};
  const auto json = json_of(*settled.payment);
  if (settled.now || settled.payment->state == to) return http::json(200, json);
  if (!may(settled.payment->state))
    return http::problem(problems::other_version, {}, {{"payment", json}});
  return http::problem(problems::payment_is_settled, {}, {{"payment", json}});
}

// --- what is sent ---

/// "7598123:2": the id of an order, and its version.
std::optional<MessagePlace> message_place_of(const std::string& text) {
  const auto colon = text.find(':');
  const auto order = parse_integer<std::int64_t>(std::string_view{text}.substr(0, colon));
  const auto seq = colon == text.npos
                       ? std::nullopt
                       : parse_integer<std::int64_t>(std::string_view{text}.substr(colon + 1));
  if (!order || !seq) return std::nullopt;
  return MessagePlace{*order, *seq};
}

std::string text_of(std::int64_t order, std::int64_t seq) {
  return fmt::format("{}:{}", order, seq);
}

Json listed_json(const OrderMessage& message) { return json_of(message); }
Json listed_json(const Refund& refund) {
  auto json = json_of(refund);
  json.add("order", refund.order);
  return json;
}
std::string place_of(const OrderMessage& message) { return text_of(message.order_id, message.seq); }
std::string place_of(const Refund& refund) { return text_of(refund.id, refund.seq); }

/// `read` gives up to `most` of a part, in a state, behind a place.
template <class Read>
http::Response list_places(Asked& asked, const char* name, Read&& read) {
  const auto page = [&](Sale& part, const std::string& after,
                        std::size_t most) -> Expected<Listed, http::Response> {
    const auto place = after.empty() ? MessagePlace{} : message_place_of(after);
    if (!place) return bad_after();
    const auto found = read(part.definition().name, *place, most);
    Listed listed;
    for (const auto& one : found) {
      auto json = listed_json(one);
      json.add("id", text_outside(asked.offer->sale(), part, place_of(one)));
      listed.items.push_back(std::move(json));
    }
    if (found.size() >= most) listed.next = place_of(found.back());
    return listed;
  };
  return page_over_parts(asked, name, page);
}

/// Messages, or refunds, in one of their states: the first one, where none is asked for.
template <class Row>
http::Response list_sent(
    Asked& asked, const Orders& connect, const char* name, const std::vector<std::string>& states,
    std::vector<Row> (OrderPayments::*read)(const std::string&, const std::string&,
                                            const MessagePlace&, std::size_t)) {
  const auto state = asked.request.query("state").value_or(states.front());
  if (std::ranges::find(states, state) == states.end())
    return wrong_parameter(fmt::format("'state' is one of {}", fmt::join(states, ", ")));
  auto& payments = connect().payments();
  return list_places(asked, name, [&](const auto& rows, const auto& after, auto most) {
    return (payments.*read)(rows, state, after, most);
  });
}

http::Response list_messages(Asked& asked, const Orders& connect) {
  return list_sent<OrderMessage>(asked, connect, "messages", {"dead", "due", "failing", "done"},
                                 &OrderPayments::messages);
}

http::Response list_refunds(Asked& asked, const Orders& connect) {
  return list_sent<Refund>(asked, connect, "refunds", {"failing", "asked", "done"},
                           &OrderPayments::refunds);
}

http::Response replayed(std::int64_t count) {
  return http::json(200, Json::object({{"replayed", count}}));
}

http::Response replay_messages(Asked& asked, const Orders& connect) {
  std::int64_t count = 0;
  for (const auto* const part : asked.offer->sale().parts())
    count += connect().payments().replay_messages(part->definition().name);
  return replayed(count);
}

/// What the path names, and where it may be.
struct NamedPlace {
  std::vector<Sale*> parts;
  MessagePlace within;
};
/// As a list has it, or, of an order that was looked at, without its bucket. Empty: it is none.
std::optional<NamedPlace> named_place_of(const Asked& asked) {
  auto& sale = asked.offer->sale();
  const auto& id = asked.request.parameter("id");
  const auto place = sale.place_of(id);
  const auto within = message_place_of(place ? place->within : id);
  if (!within) return std::nullopt;
  auto parts = sale.parts();
  if (place) parts = {parts[place->part]};
  return NamedPlace{std::move(parts), *within};
}

/// Of what order it tells, and of what money.
void note_message(Asked& asked, OrderPayments& payments, const std::string& rows,
                  const MessagePlace& place) {
  for (const auto& message : payments.messages_of(rows, place.order_id)) {
    if (message.seq != place.seq) continue;
    const auto data = JsonValue::parse(message.data, {});
    if (!data) return;
    const auto* const order = data->find("order");
    const auto* const amount = data->find("amount");
    const auto* const currency = data->find("currency");
    if (order && order->as_text()) asked.found.order = *order->as_text();
    if (amount && amount->as_integer()) asked.found.amount = *amount->as_integer();
    if (currency && currency->as_text()) asked.found.currency = *currency->as_text();
  }
}

/// A receiver that wants no more means the whole sale, so all parts of it go on.
http::Response resend_message(Asked& asked, const Orders& connect) {
  const auto place = named_place_of(asked);
  if (!place) return http::problem(problems::no_message);
  auto& payments = connect().payments();
  std::int64_t count = 0;
  for (const auto* const part : place->parts) {
    const auto sent = payments.resend_message(part->definition().name, place->within);
    if (sent > 0) note_message(asked, payments, part->definition().name, place->within);
    count += sent;
  }
  if (count == 0) return http::problem(problems::no_message);
  for (const auto* const part : asked.offer->sale().parts())
    count += payments.resume_messages(part->definition().name);
  return replayed(count);
}

/// Of an order: `act` on the one that the path names. What it is of goes into the journal.
template <class Act>
http::Response with_refund(Asked& asked, const Orders& connect, Act&& act) {
  const auto place = named_place_of(asked);
  if (!place) return http::problem(problems::no_refund);
  auto& payments = connect().payments();
  for (const auto* const part : place->parts)
    for (const auto& refund :
         payments.refunds_of(part->definition().name, place->within.order_id)) {
      if (refund.seq != place->within.seq) continue;
      if (!is_seen(asked, refund.state))
        return http::problem(problems::other_version, {}, {{"refund", listed_json(refund)}});
      asked.found = {{}, refund.order, refund.amount, refund.currency};
      if (act(payments, refund)) return {.status = 204};
    }
  return http::problem(problems::no_refund);
}

http::Response resend_refund(Asked& asked, const Orders& connect) {
  return with_refund(asked, connect, [](OrderPayments& payments, const Refund& refund) {
    return payments.resend_refund(refund.sale, {refund.id, refund.seq});
  });
}

/// The money went back in another way.
http::Response settle_refund(Asked& asked, const Orders& connect, Store& store) {
  return with_refund(asked, connect, [&](OrderPayments&, const Refund& refund) {
    return settle_outside(store, connect(), refund, asked.by.id, asked.text("reason"));
  });
}

// --- totals ---

/// Minutes by which days of the asker begin before those of UTC.
Expected<std::chrono::minutes, http::Response> offset_in(const Asked& asked) {
  constexpr std::int64_t a_day = 24 * 60;
  const auto offset = parse_integer<std::int64_t>(asked.request.query("offset").value_or("0"));
  if (offset && *offset > -a_day && *offset < a_day) return std::chrono::minutes{*offset};
  return Unexpected{wrong_parameter("'offset' is minutes, less than a day of them")};
}

std::string day_text(WallTime day, std::chrono::minutes offset) {
  return to_text(day + offset).substr(0, 10);
}

/// Money that came in and went back, by day, provider and currency, of all these rows together.
Json moved_money(OrderPayments& payments, const std::vector<std::string>& all_rows,
                 std::chrono::minutes offset) {
  std::map<std::tuple<std::string, std::string, std::string>, DayMoney, std::greater<>> sums;
  for (const auto& rows : all_rows)
    for (const auto& some : payments.money_by_day(rows, -offset)) {
      auto& sum = sums[{day_text(some.day, offset), some.provider, some.currency}];
      sum.payments += some.payments;
      sum.paid += some.paid;
      sum.refunds += some.refunds;
      sum.given_back += some.given_back;
      sum.settled += some.settled;
    }
  auto moved = Json::array();
  for (const auto& [key, sum] : sums)
    moved.add(Json::object({{"day", std::get<0>(key)},
                            {"provider", std::get<1>(key)},
                            {"currency", std::get<2>(key)},
                            {"payments", sum.payments},
                            {"paid", sum.paid},
                            {"refunds", sum.refunds},
                            {"given_back", sum.given_back},
                            {"settled", sum.settled},
                            {"net", sum.paid - sum.given_back}}));
  return moved;
}

http::Response show_totals(Asked& asked, const Orders& connect) {
  const auto offset = offset_in(asked);
  if (!offset) return offset.error();
  std::map<std::pair<WallTime, OrderState>, DayTotal, std::greater<>> sums;
  std::vector<std::string> rows;
  for (const auto* const part : asked.offer->sale().parts()) {
    rows.push_back(part->definition().name);
    for (const auto& total : connect().payments().by_day(rows.back(), -*offset)) {
      auto& sum = sums[{total.day, total.state}];
      sum.orders += total.orders;
      sum.units += total.units;
      sum.returned += total.returned;
    }
  }
  const auto& terms = asked.offer->sale().definition().payment;
  const auto price = [&](std::int64_t units) {
    return terms ? Json{sale::price_of(units, *terms)} : Json{};
  };
  auto days = Json::array();
  for (const auto& [key, sum] : sums)
    days.add(Json::object({{"day", day_text(key.first, *offset)},
                           {"state", to_string(key.second)},
                           {"orders", sum.orders},
                           {"units", sum.units},
                           {"amount", price(sum.units)},
                           {"returned", sum.returned},
                           {"returned_amount", price(sum.returned)}}));
  return http::json(200,
                    Json::object({{"days", days},
                                  {"currency", terms ? Json{terms->currency} : Json{}},
                                  {"money", moved_money(connect().payments(), rows, *offset)}}));
}

http::Response show_money(Asked& asked, const Orders& connect) {
  const auto offset = offset_in(asked);
  if (!offset) return offset.error();
  return http::json(
      200, Json::object({{"money", moved_money(connect().payments(), {std::string{}}, *offset)}}));
}

http::Parameter state_of(const char* states) {
  return {"state", "query", "The state that they are in", false, states};
}

http::Parameter offset_parameter() {
  return {"offset", "query", "Minutes by which days begin before those of UTC", false,
          R"({"type":"integer","default":0})"};
}

std::vector<OperateCall> payment_calls(Store& store) {
  using Kind = BodyMember::Kind;
  using namespace problems;
  const std::string of_payment = "/v1/operate/payments/{provider}/{event}";
  const auto state =
      state_of(R"({"type":"string","enum":["waiting","asking","applied","returned","flagged",)"
               R"("refunding","refunded","settled"],"default":"flagged"})");
  const auto verb = [&](const char* name, const char* operation, const char* summary,
                        PaymentState to) {
    return OperateCall{.method = "POST",
                       .path = of_payment + name,
                       .operation = operation,
                       .summary = summary,
                       .body = {{"reason", Kind::words}},
                       .is_final = true,
                       .parameters = {if_match},
                       .answer = {200, "The payment as it stands now", any_figures},
                       .problems = {&no_payment, &payment_is_settled, &other_version},
                       .serve = [to, &store](Asked& asked, const Orders& connect) {
                         return settle_payment(asked, connect, store, to);
                       }};
  };
  return {{.method = "GET",
           .path = "/v1/operate/sales/{sale}/payments",
           .operation = "console_payments",
           .summary = "Payments in a state, as they came",
           .has_pages = true,
           .parameters = {state},
           .answer = {200, "Payments", any_figures},
           .serve = list_payments},
          {.method = "GET",
           .path = "/v1/operate/payments",
           .operation = "console_all_payments",
           .summary = "The same of all sales, also of such that nobody knows",
           .has_pages = true,
           .parameters = {state},
           .answer = {200, "Payments", any_figures},
           .serve = list_all_payments},
          {.method = "GET",
           .path = "/v1/operate/money",
           .operation = "console_money",
           .summary = "What was paid in, given back and settled by hand by day, provider and "
                      "currency, of all sales",
           .parameters = {offset_parameter()},
           .answer = {200, "Days", money_schema},
           .serve = show_money},
          verb("/refund", "refund_payment",
               "Gives the money of a payment back that paid no order; a repeat sends it at once",
               PaymentState::refunding),
          verb("/settle", "settle_payment", "Notes that such a payment was handled outside",
               PaymentState::settled)};
}

std::vector<OperateCall> views_of_money(const std::string& of_sale) {
  std::vector<OperateCall> all;
  const auto list = [&](const char* path, const char* operation, const char* summary,
                        http::Parameter state, auto serve) {
    all.push_back({.method = "GET",
                   .path = of_sale + path,
                   .operation = operation,
                   .summary = summary,
                   .has_pages = true,
                   .parameters = {std::move(state)},
                   .answer = {200, summary, any_figures},
                   .serve = serve});
  };
  list("/messages", "console_messages", "Messages about orders, in a state",
       state_of(R"({"type":"string","enum":["due","failing","done","dead"],"default":"dead"})"),
       list_messages);
  list("/refunds", "console_refunds", "Refunds of orders, in a state",
       state_of(R"({"type":"string","enum":["asked","failing","done"],"default":"failing"})"),
       list_refunds);
  all.push_back({.method = "GET",
                 .path = of_sale + "/totals",
                 .operation = "console_totals",
                 .summary =
                     "Orders and units by day and state, and what was paid in, given back and "
                     "settled by hand by day, provider and currency; the latest days first",
                 .parameters = {offset_parameter()},
                 .answer = {200, "Days", totals_schema},
                 .serve = show_totals});
  return all;
}

std::vector<OperateCall> verbs_of_money(const std::string& of_sale, Store& store) {
  using namespace problems;
  std::vector<OperateCall> all;
  const http::Answer count{200, "How many go out", any_figures};
  all.push_back({.method = "POST",
                 .path = of_sale + "/messages/{id}/resend",
                 .operation = "resend_message",
                 .summary = "Sends a message at once that was not delivered; all that wait, where "
                            "the receiver had stopped them",
                 .answer = count,
                 .problems = {&no_message},
                 .serve = resend_message});
  all.push_back({.method = "POST",
                 .path = of_sale + "/refunds/{id}/resend",
                 .operation = "resend_refund",
                 .summary = "Sends a refund at once that is not done",
                 .problems = {&no_refund},
                 .serve = resend_refund});
  all.push_back({.method = "POST",
                 .path = of_sale + "/refunds/{id}/settle",
                 .operation = "settle_refund",
                 .summary = "Notes that the money of a refund went back in another way",
                 .body = {{"reason", BodyMember::Kind::words}},
                 .is_final = true,
                 .parameters = {if_match},
                 .problems = {&no_refund, &other_version},
                 .serve = [&store](Asked& asked, const Orders& connect) {
                   return settle_refund(asked, connect, store);
                 }});
  all.push_back({.method = "POST",
                 .path = of_sale + "/messages/replay",
                 .operation = "replay_messages",
                 .summary = "Makes all dead messages due again, and all that wait where the "
                            "receiver had stopped them",
                 .answer = count,
                 .serve = replay_messages});
  return all;
}

}  // namespace

std::vector<OperateCall> money_calls(Store& store) {
  const std::string of_sale = "/v1/operate/sales/{sale}";
  auto all = payment_calls(store);
  for (auto& some : {views_of_money(of_sale), verbs_of_money(of_sale, store)})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace sluice::server
