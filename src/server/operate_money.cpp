/// What operators see and do about money and messages: payments that paid nothing, refunds, what
/// was not delivered, totals.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/instant.hpp"
#include "base/integer.hpp"
#include "sale/payment_terms.hpp"
#include "server/operate_calls.hpp"
#include "server/operate_text.hpp"
#include "server/problems.hpp"
#include "server/sales_text.hpp"
#include "sluice/payment_provider.hpp"

namespace sluice::server {
namespace {

using Orders = BlockingThreads::Orders;

constexpr const char* any_figures = R"({"type":"object"})";

http::Response wrong_parameter(std::string_view detail) {
  return http::problem(problems::bad_parameter, detail);
}
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

http::Response settle_payment(Asked& asked, const Orders& connect, PaymentState to) {
  const PaymentPlace place{asked.request.parameter("provider"), asked.request.parameter("event")};
  const auto may = [&](PaymentState state) { return is_seen(asked, to_string(state)); };
  const auto settled =
      connect().payments().settle_payment(place, to, asked.by.id, asked.text("reason"), may);
  if (!settled.payment) return http::problem(problems::no_payment);
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

http::Response list_messages(Asked& asked, const Orders& connect) {
  constexpr std::array<std::string_view, 4> states{"due", "failing", "done", "dead"};
  const auto state = asked.request.query("state").value_or("dead");
  if (std::ranges::find(states, state) == states.end())
    return wrong_parameter("'state' is due, failing, done or dead");
  auto& payments = connect().payments();
  return list_places(asked, "messages", [&](const auto& rows, const auto& after, auto most) {
    return payments.messages(rows, state, after, most);
  });
}

http::Response list_refunds(Asked& asked, const Orders& connect) {
  constexpr std::array<std::string_view, 3> states{"asked", "failing", "done"};
  const auto state = asked.request.query("state").value_or("failing");
  if (std::ranges::find(states, state) == states.end())
    return wrong_parameter("'state' is asked, failing or done");
  auto& payments = connect().payments();
  return list_places(asked, "refunds", [&](const auto& rows, const auto& after, auto most) {
    return payments.refunds(rows, state, after, most);
  });
}

http::Response replay_messages(Asked& asked, const Orders& connect) {
  std::int64_t replayed = 0;
  for (const auto* const part : asked.offer->sale().parts())
    replayed += connect().payments().replay_messages(part->definition().name);
  return http::json(200, Json::object({{"replayed", replayed}}));
}

using Resend = bool (OrderPayments::*)(const std::string& sale, const MessagePlace& place);

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

http::Response resend(Asked& asked, const Orders& connect, Resend again,
                      const http::ProblemType& none) {
  const auto place = named_place_of(asked);
  const bool is_done =
      place && std::ranges::any_of(place->parts, [&](const Sale* part) {
        return (connect().payments().*again)(part->definition().name, place->within);
      });
  return is_done ? http::Response{.status = 204} : http::problem(none);
}

/// Of an order: the money went back in another way.
http::Response settle_refund(Asked& asked, const Orders& connect) {
  const auto place = named_place_of(asked);
  if (!place) return http::problem(problems::no_refund);
  auto& payments = connect().payments();
  for (const auto* const part : place->parts)
    for (const auto& refund : payments.refunds_of(part->definition().name, place->within.order_id))
      if (refund.seq == place->within.seq) {
        if (!is_seen(asked, refund.state))
          return http::problem(problems::other_version, {}, {{"refund", listed_json(refund)}});
        if (payments.refund_done(refund)) return {.status = 204};
      }
  return http::problem(problems::no_refund);
}

// --- totals ---

/// `offset`: minutes by which days of whoever asks begin before those of UTC.
http::Response show_totals(Asked& asked, const Orders& connect) {
  constexpr std::int64_t a_day = 24 * 60;
  const auto word = asked.request.query("offset").value_or("0");
  const auto offset = parse_integer<std::int64_t>(word);
  if (!offset || *offset <= -a_day || *offset >= a_day)
    return wrong_parameter("'offset' is minutes, less than a day of them");
  std::map<std::pair<WallTime, OrderState>, DayTotal, std::greater<>> sums;
  for (const auto* const part : asked.offer->sale().parts())
    for (const auto& total :
         connect().payments().by_day(part->definition().name, std::chrono::minutes{-*offset})) {
      auto& sum = sums[{total.day, total.state}];
      sum.orders += total.orders;
      sum.units += total.units;
    }
  const auto& terms = asked.offer->sale().definition().payment;
  auto days = Json::array();
  for (const auto& [key, sum] : sums) {
    const auto here = key.first + std::chrono::minutes{*offset};
    days.add(Json::object({{"day", to_text(here).substr(0, 10)},
                           {"state", to_string(key.second)},
                           {"orders", sum.orders},
                           {"units", sum.units},
                           {"amount", terms ? Json{sale::price_of(sum.units, *terms)} : Json{}}}));
  }
  return http::json(
      200, Json::object({{"days", days}, {"currency", terms ? Json{terms->currency} : Json{}}}));
}

http::Parameter state_of(const char* states) {
  return {"state", "query", "The state that they are in", false, states};
}

std::vector<OperateCall> payment_calls() {
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
                       .serve = [to](Asked& asked, const Orders& connect) {
                         return settle_payment(asked, connect, to);
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
  all.push_back(
      {.method = "GET",
       .path = of_sale + "/totals",
       .operation = "console_totals",
       .summary = "Orders, units and money by day and state; the latest days first",
       .parameters = {{"offset", "query", "Minutes by which days begin before those of UTC", false,
                       R"({"type":"integer","default":0})"}},
       .answer = {200, "Days", any_figures},
       .serve = show_totals});
  return all;
}

std::vector<OperateCall> verbs_of_money(const std::string& of_sale) {
  using namespace problems;
  std::vector<OperateCall> all;
  const auto act = [&](const char* path, const char* operation, const char* summary,
                       const http::ProblemType& none, Resend again) {
    all.push_back({.method = "POST",
                   .path = of_sale + path,
                   .operation = operation,
                   .summary = summary,
                   .problems = {&none},
                   .serve = [again, &none](Asked& asked, const Orders& connect) {
                     return resend(asked, connect, again, none);
                   }});
  };
  act("/messages/{id}/resend", "resend_message", "Sends a message at once that was not delivered",
      no_message, &OrderPayments::resend_message);
  act("/refunds/{id}/resend", "resend_refund", "Sends a refund at once that is not done", no_refund,
      &OrderPayments::resend_refund);
  all.push_back({.method = "POST",
                 .path = of_sale + "/refunds/{id}/settle",
                 .operation = "settle_refund",
                 .summary = "Notes that the money of a refund went back in another way",
                 .body = {{"reason", BodyMember::Kind::words}},
                 .is_final = true,
                 .parameters = {if_match},
                 .problems = {&no_refund, &other_version},
                 .serve = settle_refund});
  all.push_back({.method = "POST",
                 .path = of_sale + "/messages/replay",
                 .operation = "replay_messages",
                 .summary = "Makes all dead messages due again",
                 .answer = {200, "How many there were", any_figures},
                 .serve = replay_messages});
  return all;
}

}  // namespace

std::vector<OperateCall> money_calls() {
  const std::string of_sale = "/v1/operate/sales/{sale}";
  auto all = payment_calls();
  for (auto& some : {views_of_money(of_sale), verbs_of_money(of_sale)})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace sluice::server
