#include "server/number_tools.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/instant.hpp"
#include "server/order_requests.hpp"
#include "server/problems.hpp"
#include "server/request_parts.hpp"
#include "server/tool_answer.hpp"
#include "sluice/when_all.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t longest_prefix = 32;
constexpr std::size_t longest_zone = 64;
constexpr IntegerMember count_member{"count", 1, Series::most_of_wish, 1};
const IntegerMember digits_member{"digits", 1, 15, SeriesOptions{}.digits};

const std::string numbers_wish_schema =
    fmt::format(R"({{"type":"object","additionalProperties":false,"properties":{{
"count":{{"type":"integer","minimum":1,"maximum":{},"default":1}},
"prefix":{{"type":"string","description":"what a number begins with; else the name"}},
"zone":{{"type":"string","default":"UTC",
"description":"IANA name of the zone whose midnights begin a day"}},
"digits":{{"type":"integer","minimum":1,"maximum":15,"default":{}}}}}}})",
                Series::most_of_wish, SeriesOptions{}.digits);

const std::string numbers_schema =
    R"({"type":"object","required":["numbers"],"properties":{
"numbers":{"type":"array","items":{"type":"string"},
"description":"fewer than asked for where the day is full"},
"period":{"type":"string","description":"the day, 20260102"}}})";

const std::string series_schema = R"({"type":"object","required":["series"],"properties":{
"series":{"type":"string"},"last":{"type":"string","description":"missing: there is none"},
"period":{"type":"string"},"given":{"type":"integer","description":"numbers of that day"},
"issued_at":{"type":"string","format":"date-time"}}})";

const std::string ids_wish_schema =
    fmt::format(R"({{"type":"object","additionalProperties":false,"properties":{{
"count":{{"type":"integer","minimum":1,"maximum":{},"default":1}}}}}})",
                Series::most_of_wish);

const std::string ids_schema = R"({"type":"object","required":["ids"],"properties":{
"ids":{"type":"array","items":{"type":"string","description":"64 bits, in decimal"}}}})";

struct NumbersWish {
  ToolCall call;
  std::string key;
  std::size_t count = 1;
  SeriesOptions options;
};

/// A zone is looked up among files: nothing but what a zone is called goes there.
bool may_be_zone(std::string_view name) {
  return name.find("..") == name.npos && !name.starts_with('/') &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "_+-/") == name.npos;
}

Expected<NumbersWish, http::Response> numbers_wish_of(ToolCall call, const http::Request& request) {
  auto key = server::key_of(request);
  if (!key) return Unexpected{std::move(key.error())};
  auto body = server::body_of(request, {"count", "prefix", "zone", "digits"});
  if (!body) return Unexpected{std::move(body.error())};
  auto count = integer_of(*body, count_member);
  if (!count) return Unexpected{std::move(count.error())};
  auto digits = integer_of(*body, digits_member);
  if (!digits) return Unexpected{std::move(digits.error())};
  auto prefix = text_of(*body, "prefix", longest_prefix);
  if (!prefix) return Unexpected{std::move(prefix.error())};
  auto zone = text_of(*body, "zone", longest_zone);
  if (!zone) return Unexpected{std::move(zone.error())};
  if (!may_be_zone(*zone))
    return Unexpected{http::problem(problems::bad_body, "'zone' is a name like Asia/Shanghai")};
  NumbersWish wish{.call = std::move(call), .key = std::move(key->value), .options = {}};
  wish.count = static_cast<std::size_t>(*count);
  wish.options.prefix = std::move(*prefix);
  if (!zone->empty()) wish.options.zone = std::move(*zone);
  wish.options.digits = static_cast<int>(*digits);
  return wish;
}

/// Names and prefixes may have spaces: where the one ends and the other begins, the length says.
std::string series_key(const std::string& name, const SeriesOptions& options) {
  return fmt::format("{} {} {} {}{}", options.digits, options.zone, name.size(), name,
                     options.prefix);
}

Task<http::Response> numbers_of(std::shared_ptr<Series> series, std::string wish,
                                std::size_t count) {
  auto drawing = series->next_of(std::move(wish), count);
  const auto drawn = co_await drawing;
  if (!drawn)
    co_return http::problem(problems::series_full, {},
                            {{"period", drawn.error().period}, {"largest", drawn.error().largest}});
  auto numbers = Json::array();
  for (const auto& number : *drawn) numbers.add(number.text);
  co_return http::json(200,
                       Json::object({{"numbers", numbers}, {"period", drawn->front().period}}));
}

/// What the series says of itself, and nothing is repaired.
Task<http::Response> series_of(Store& store, std::string name) {
  auto looking = Series::repair(store, name, {.only_look = true});
  const auto found = co_await looking;
  if (found.outcome == RepairOutcome::no_series) co_return http::problem(problems::no_series);
  auto json = Json::object({{"series", name}});
  if (found.last_sequence && !found.last_period.empty()) {
    json.add("last", fmt::format("{}{}{:0{}}", found.prefix, found.last_period,
                                 *found.last_sequence, found.digits));
    json.add("period", found.last_period);
    json.add("given", *found.last_sequence);
    json.add("issued_at", to_text(found.last));
  }
  co_return http::json(200, json);
}

Task<http::Response> ids_of(std::shared_ptr<IdWorker> worker, std::size_t count) {
  std::vector<Task<std::int64_t>> asked;
  for (std::size_t i = 0; i < count; ++i) asked.push_back(worker->next());
  auto together = when_all(std::move(asked));
  const auto given = co_await together;
  auto ids = Json::array();
  for (const auto id : given) ids.add(fmt::to_string(id));
  co_return http::json(200, Json::object({{"ids", ids}}));
}

}  // namespace

void NumberTools::next_numbers(http::Request&& request, http::Responder&& respond) {
  auto call = door_.call_of(request);
  if (!call) return respond.send(std::move(call.error()));
  auto asked = numbers_wish_of(std::move(*call), request);
  if (!asked) return respond.send(std::move(asked.error()));
  const auto& [caller, name] = asked->call;
  const auto& options = asked->options;
  answer_call(std::move(respond), [&] {
    auto series = series_.get(series_key(name, options),
                              [&] { return std::make_shared<Series>(store_, name, options); });
    return numbers_of(std::move(series), fmt::format("{} {}", caller, asked->key), asked->count);
  });
}

void NumberTools::show_series(http::Request&& request, http::Responder&& respond) {
  auto call = door_.call_of(request);
  if (!call) return respond.send(std::move(call.error()));
  answer_call(std::move(respond), [&] { return series_of(store_, std::move(call->name)); });
}

void NumberTools::next_ids(http::Request&& request, http::Responder&& respond) {
  auto call = door_.call_of(request);
  if (!call) return respond.send(std::move(call.error()));
  const auto body = server::body_of(request, {"count"});
  if (!body) return respond.send(body.error());
  const auto count = integer_of(*body, count_member);
  if (!count) return respond.send(count.error());
  answer_call(std::move(respond), [&] {
    auto worker =
        ids_.get(call->name, [&] { return std::make_shared<IdWorker>(store_, call->name); });
    return ids_of(std::move(worker), static_cast<std::size_t>(*count));
  });
}

void NumberTools::add_routes(http::Routes& routes) {
  const auto calls = [this](void (NumberTools::*serve)(http::Request&&, http::Responder &&)) {
    return [this, serve](http::Request&& request, http::Responder&& respond) {
      (this->*serve)(std::move(request), std::move(respond));
    };
  };
  routes.add(door_.route(
      {.method = "POST",
       .path = "/v1/series/{name}/next",
       .operation = "next_numbers",
       .summary = "The next numbers of a series; a repeat with the same key gets the same numbers",
       .parameters = {{"Idempotency-Key", "header",
                       "Names this wish for numbers; the same with each repeat", true}},
       .request = numbers_wish_schema,
       .answers = {{200, "The numbers", numbers_schema}},
       .problems = {&problems::bad_body, &problems::no_idempotency_key, &problems::other_definition,
                    &problems::series_full},
       .handler = calls(&NumberTools::next_numbers)}));
  routes.add(door_.route({.method = "GET",
                          .path = "/v1/series/{name}",
                          .operation = "show_series",
                          .summary = "The latest number of a series",
                          .answers = {{200, "The series", series_schema}},
                          .problems = {&problems::no_series},
                          .handler = calls(&NumberTools::show_series)}));
  routes.add(door_.route({.method = "POST",
                          .path = "/v1/ids/{name}/next",
                          .operation = "next_ids",
                          .summary = "The next ids; a repeat takes others, which does no harm",
                          .request = ids_wish_schema,
                          .answers = {{200, "The ids", ids_schema}},
                          .problems = {&problems::bad_body},
                          .handler = calls(&NumberTools::next_ids)}));
}

}  // namespace sluice::server
