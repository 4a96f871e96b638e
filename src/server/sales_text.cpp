#include "server/sales_text.hpp"

#include <fmt/format.h>

#include "base/instant.hpp"
#include "http/text.hpp"
#include "server/problems.hpp"
#include "sluice/payment_provider.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

http::Response recovering() {
  auto response = http::problem(problems::recovering);
  http::add_retry_after(response, 1s);
  return response;
}

http::Response not_started(const SaleDefinition& sale) {
  if (!sale.opens_at) return http::problem(problems::not_started);
  auto response = http::problem(problems::not_started, {}, {{"opens_at", to_text(*sale.opens_at)}});
  http::add_retry_after(response, *sale.opens_at - system_clock().wall());
  return response;
}

http::Response with_order(const http::ProblemType& type, const SaleDefinition& sale,
                          const Admission& admission) {
  if (!admission.order) return http::problem(type);
  return http::problem(type, {}, {{"order", told_json(sale.name, *admission.order)}});
}

http::Response bought(const SaleDefinition& sale, const SaleOrder& order, int status) {
  auto response = http::json(status, told_json(sale.name, order));
  response.add("Location", path_of(sale.name, order));
  return response;
}

}  // namespace

const std::string sale_schema = R"({"type":"object","required":["name","state"],"properties":{
"name":{"type":"string"},"state":{"type":"string","enum":["not loaded","not started","open",
"sold out","full","closed","recovering","archived"]},"stock":{"type":"integer"},
"sold":{"type":"integer"},"left":{"type":"integer"},"orders":{"type":"integer"},
"opens_at":{"type":"string","format":"date-time"},
"closes_at":{"type":"string","format":"date-time"},
"price":{"type":"integer","description":"of a unit, in the smallest unit of the currency"},
"currency":{"type":"string"},
"buckets":{"type":"integer","description":"in so many lies the stock; none: in one place"},
"in_transfer":{"type":"integer","description":"units on their way between buckets, in `left`"}}})";

const std::string sale_list_schema = fmt::format(
    R"({{"type":"object","properties":{{"sales":{{"type":"array","items":{}}}}}}})", sale_schema);

namespace {

const std::string order_members =
    R"("id":{"type":"string","description":"64 bits, in decimal"},"number":{"type":"string"},
"sale":{"type":"string"},"units":{"type":"integer"},"state":{"type":"string"},
"issued_at":{"type":"string","format":"date-time"},
"recorded":{"type":"boolean","description":"the database has it"},
"returned":{"type":"integer","description":"units that were cancelled while the others stand"},
"due":{"type":"integer","description":"in the smallest unit of the currency"},
"pay_by":{"type":"string","format":"date-time"},
"buyer":{"type":"string","description":"this and what follows: to the shop alone"},
"request":{"type":"string","description":"the Idempotency-Key of the purchase"},
"reason":{"type":"string","description":"why it ended"},
"refunds":{"type":"array","items":{"type":"object"}},
"taken_back":{"type":"object","description":"by this call, or by one of before with its key"})";

/// `more`: members of an order beside those that each has.
std::string order_schema_with(std::string_view more) {
  return fmt::format(
      R"({{"type":"object","required":["id","number","units","state"],"properties":{{{}{}}}}})",
      order_members, more);
}

}  // namespace

const std::string order_schema = order_schema_with({});

const std::string order_details_schema = order_schema_with(
    R"(,"dead_letter":{"type":["object","null"],"description":"where the database has refused it"},
"payments":{"type":"array","items":{"type":"object"},"description":"as they came"},
"messages":{"type":"array","items":{"type":"object"},"description":"the latest first"},
"history":{"type":"array","items":{"type":"object"},"description":"the latest first"})");

const std::string buy_schema =
    R"({"type":"object","additionalProperties":false,"properties":{
"units":{"type":"integer","minimum":1,"default":1}}})";

const std::string cancel_schema =
    R"({"type":"object","additionalProperties":false,"properties":{
"reason":{"type":"string","maxLength":1000}}})";

const std::string refund_schema =
    R"({"type":"object","additionalProperties":false,"properties":{
"units":{"type":"integer","minimum":1,"description":"without it: all that are left"},
"reason":{"type":"string","maxLength":1000}}})";

const std::string order_list_schema = fmt::format(
    R"({{"type":"object","required":["orders"],"properties":{{
"orders":{{"type":"array","items":{}}},
"after":{{"type":"string","description":"what to ask for next, now or later"}}}}}})",
    order_schema);

Json json_of(const SaleDefinition& sale, const BucketedStatus& of_buckets) {
  const auto& status = of_buckets.whole;
  auto json = Json::object({{"name", sale.name},
                            {"state", to_string(status.state)},
                            {"stock", status.stock},
                            {"sold", status.sold},
                            {"left", status.left()},
                            {"orders", status.orders}});
  if (sale.opens_at) json.add("opens_at", to_text(*sale.opens_at));
  if (sale.closes_at) json.add("closes_at", to_text(*sale.closes_at));
  if (sale.payment) {
    json.add("price", sale.payment->price);
    json.add("currency", sale.payment->currency);
  }
  if (!of_buckets.buckets.empty()) {
    json.add("buckets", of_buckets.buckets.size());
    json.add("in_transfer", of_buckets.under_way);
  }
  return json;
}

Json told_json(std::string_view sale, const SaleOrder& order) {
  return Json::object({{"id", fmt::to_string(order.id)},
                       {"number", order.number},
                       {"sale", sale},
                       {"units", order.units},
                       {"state", to_string(order.state)},
                       {"issued_at", to_text(order.issued_at)}});
}

Json json_of(const Refund& refund) {
  auto json =
      Json::object({{"key", refund_key(refund)},
                    {"amount", refund.amount},
                    {"currency", refund.currency},
                    {"provider", refund.provider},
                    {"payment", refund.event},
                    {"state", refund.state},
                    {"failed", refund.attempts},
                    {"since", to_text(refund.since)},
                    {refund.state != "asked" ? "done_at" : "next_at", to_text(refund.due)}});
  if (!refund.note.empty()) json.add("note", refund.note);
  return json;
}

Json json_of(std::string_view sale, const ShownOrder& shown) {
  auto json = told_json(sale, shown.order);
  json.add("recorded", shown.is_recorded);
  if (const auto& money = shown.money) {
    json.add("returned", money->returned);
    json.add("due", money->due);
    if (money->pay_by) json.add("pay_by", to_text(*money->pay_by));
  }
  if (const auto& more = shown.to_shop) {
    json.add("buyer", shown.order.buyer.value);
    json.add("request", shown.order.request.value);
    if (!more->reason.empty()) json.add("reason", more->reason);
    auto refunds = Json::array();
    for (const auto& refund : more->refunds) refunds.add(json_of(refund));
    json.add("refunds", refunds);
  }
  return json;
}

std::string tag_of(const ShownOrder& shown) {
  return http::entity_tag(fmt::format("{}-{}-{}", shown.order.units, to_string(shown.order.state),
                                      shown.money ? shown.money->version : 0));
}

std::string path_of(std::string_view sale, const SaleOrder& order) {
  return fmt::format("/v1/sales/{}/orders/{}", http::escape(sale), order.id);
}

http::Response answer_of(const SaleDefinition& sale, const Admission& admission,
                         std::int64_t left) {
  using enum SaleOutcome;
  switch (admission.outcome) {
    case admitted: return bought(sale, *admission.order, 201);
    case repeated: return bought(sale, *admission.order, 200);
    case other_units: return with_order(problems::other_units, sale, admission);
    case cancelled: return with_order(problems::order_ended, sale, admission);
    case already_bought: return with_order(problems::already_bought, sale, admission);
    case too_many_units: return with_order(problems::too_many_units, sale, admission);
    case sold_out: return http::problem(problems::sold_out);
    case not_enough: return http::problem(problems::not_enough, {}, {{"left", left}});
    case full: return http::problem(problems::full);
    case not_started: return server::not_started(sale);
    case closed: return http::problem(problems::closed);
    case moving:
    case SaleOutcome::recovering:
    case not_loaded: return server::recovering();  // its worker makes a lost sale again
  }
  return http::problem(http::problems::internal_error);
}

http::Response answer_of(const http::Request& request, std::string_view sale,
                         const ShownOrder& shown) {
  const auto tag = tag_of(shown);
  if (shown.is_recorded && http::is_not_modified(request, tag)) {
    http::Response response{.status = 304};
    response.add("ETag", tag);
    return response;
  }
  auto response = http::json(200, json_of(sale, shown));
  if (shown.is_recorded) response.add("ETag", tag);  // before, it is about to change
  return response;
}

}  // namespace sluice::server
