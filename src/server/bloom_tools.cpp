#include "server/bloom_tools.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bloom/sizing.hpp"
#include "server/order_requests.hpp"
#include "server/problems.hpp"
#include "server/request_parts.hpp"
#include "server/tool_answer.hpp"

namespace sluice::server {
namespace {

using Filter = std::shared_ptr<SharedBloomFilter>;

constexpr std::size_t most_keys = 1000;
constexpr std::uint64_t most_bits = std::uint64_t{1} << 30;  // 128 MiB of the store's memory
constexpr IntegerMember expected_member{"expected", 1, 1'000'000'000, 0};

const std::string size_schema = fmt::format(
    R"({{"type":"object","additionalProperties":false,"required":["expected"],"properties":{{
"expected":{{"type":"integer","minimum":1,"maximum":{},"description":"how many keys it is for"}},
"false_positives":{{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1,"default":{}}}}}}})",
    expected_member.most, SharedBloomSize{}.error_rate);

const std::string keys_schema = fmt::format(
    R"({{"type":"object","additionalProperties":false,"required":["keys"],"properties":{{
"keys":{{"type":"array","minItems":1,"maxItems":{},"items":{{"type":"string"}}}}}}}})",
    most_keys);

const std::string filter_schema = R"({"type":"object","properties":{"filter":{"type":"string"},
"expected":{"type":"integer"},"false_positives":{"type":"number","description":"as ordered"},
"false_positives_now":{"type":"number","description":"by the bits that are set"},
"keys":{"type":"integer","description":"estimated by the bits that are set"},
"bytes":{"type":"integer","description":"in the store"}}})";

const std::string new_schema = R"({"type":"object","required":["new"],"properties":{
"new":{"type":"integer","description":"keys that were certainly not there before"}}})";

const std::string present_schema = R"({"type":"object","required":["present"],"properties":{
"present":{"type":"array","items":{"type":"boolean"},
"description":"for each key; false: it was never added"}}})";

Unexpected<http::Response> refuse_body(std::string_view detail) {
  return Unexpected{http::problem(problems::bad_body, detail)};
}

Expected<SharedBloomSize, http::Response> size_of(const http::Request& request) {
  const auto body = server::body_of(request, {"expected", "false_positives"});
  if (!body) return Unexpected{body.error()};
  if (!body->find("expected")) return refuse_body("'expected' is missing: how many keys it is for");
  const auto expected = integer_of(*body, expected_member);
  if (!expected) return Unexpected{expected.error()};
  SharedBloomSize size{.expected = static_cast<std::uint64_t>(*expected)};
  if (const auto* const value = body->find("false_positives")) {
    const auto* const rate = value->as_double();
    if (!rate || *rate < 1e-9 || *rate > 0.5)
      return refuse_body("'false_positives' is a number from 1e-9 to 0.5, as 0.01");
    size.error_rate = *rate;
  }
  if (const auto bits = bloom::optimal_bits(size.expected, size.error_rate); bits > most_bits)
    return refuse_body(
        fmt::format("this filter would need {} bits, and may have {}: expect fewer "
                    "keys, or allow more false positives",
                    bits, most_bits));
  return size;
}

Expected<std::vector<std::string>, http::Response> keys_of(const http::Request& request) {
  const auto body = server::body_of(request, {"keys"});
  if (!body) return Unexpected{body.error()};
  const auto* const value = body->find("keys");
  const auto* const items = value ? value->as_array() : nullptr;
  if (!items || items->empty() || items->size() > most_keys)
    return refuse_body(fmt::format("'keys' is a list of 1 to {} texts", most_keys));
  std::vector<std::string> keys;
  for (const auto& item : *items) {
    if (!item.as_text())
      return refuse_body(
          fmt::format("key {} is no text: write numbers in quotes", keys.size() + 1));
    keys.push_back(*item.as_text());
  }
  return keys;
}

Task<http::Response> created(Filter filter, SharedBloomSize size) {
  auto creating = filter->try_create(size);
  const bool is_new = co_await creating;
  if (!is_new) {
    auto joining = filter->ensure_created(size);
    co_await joining;
  }
  co_return http::json(is_new ? 201 : 200, Json::object({{"filter", filter->name()},
                                                         {"expected", size.expected},
                                                         {"false_positives", size.error_rate}}));
}

Task<http::Response> added(Filter filter, std::vector<std::string> keys) {
  auto adding = filter->add(bloom_keys(keys));
  const auto are_new = co_await adding;
  co_return http::json(200, Json::object({{"new", std::ranges::count(are_new, true)}}));
}

Task<http::Response> looked_up(Filter filter, std::vector<std::string> keys) {
  auto asking = filter->contains(bloom_keys(keys));
  const auto are_there = co_await asking;
  auto present = Json::array();
  for (const bool is_there : are_there) present.add(is_there);
  co_return http::json(200, Json::object({{"present", present}}));
}

Task<http::Response> described(Filter filter) {
  auto asking = filter->info();
  const auto info = co_await asking;
  std::uint64_t bytes = 0;
  for (const auto& link : info.links) bytes += link.bytes;
  co_return http::json(200, Json::object({{"filter", filter->name()},
                                          {"expected", info.expected},
                                          {"false_positives", info.error_rate},
                                          {"false_positives_now", info.error_rate_now},
                                          {"keys", info.keys},
                                          {"bytes", bytes}}));
}

}  // namespace

std::shared_ptr<SharedBloomFilter> BloomTools::filter_of(const std::string& name) {
  return filters_.get(name, [&] { return std::make_shared<SharedBloomFilter>(store_, name); });
}

void BloomTools::create(http::Request&& request, http::Responder&& respond) {
  const auto call = door_.call_of(request);
  if (!call) return respond.send(call.error());
  const auto size = size_of(request);
  if (!size) return respond.send(size.error());
  answer_call(std::move(respond), [&] { return created(filter_of(call->name), *size); });
}

void BloomTools::add(http::Request&& request, http::Responder&& respond) {
  const auto call = door_.call_of(request);
  if (!call) return respond.send(call.error());
  const auto keys = keys_of(request);
  if (!keys) return respond.send(keys.error());
  answer_call(std::move(respond), [&] { return added(filter_of(call->name), *keys); });
}

void BloomTools::contains(http::Request&& request, http::Responder&& respond) {
  const auto call = door_.call_of(request);
  if (!call) return respond.send(call.error());
  const auto keys = keys_of(request);
  if (!keys) return respond.send(keys.error());
  answer_call(std::move(respond), [&] { return looked_up(filter_of(call->name), *keys); });
}

void BloomTools::show(http::Request&& request, http::Responder&& respond) {
  const auto call = door_.call_of(request);
  if (!call) return respond.send(call.error());
  answer_call(std::move(respond), [&] { return described(filter_of(call->name)); });
}

void BloomTools::add_routes(http::Routes& routes) {
  const auto calls = [this](void (BloomTools::*serve)(http::Request&&, http::Responder &&)) {
    return [this, serve](http::Request&& request, http::Responder&& respond) {
      (this->*serve)(std::move(request), std::move(respond));
    };
  };
  routes.add(door_.route({.method = "PUT",
                          .path = "/v1/bloom/{name}",
                          .operation = "create_bloom_filter",
                          .summary = "Make a Bloom filter, or join the one of this size",
                          .request = size_schema,
                          .answers = {{201, "It is made", filter_schema},
                                      {200, "It was there, of this size", filter_schema}},
                          .problems = {&problems::bad_body, &problems::other_definition},
                          .handler = calls(&BloomTools::create)}));
  routes.add(door_.route({.method = "POST",
                          .path = "/v1/bloom/{name}/add",
                          .operation = "add_to_bloom_filter",
                          .summary = "Add keys",
                          .request = keys_schema,
                          .answers = {{200, "They are there", new_schema}},
                          .problems = {&problems::bad_body, &problems::no_filter},
                          .handler = calls(&BloomTools::add)}));
  routes.add(door_.route({.method = "POST",
                          .path = "/v1/bloom/{name}/contains",
                          .operation = "ask_bloom_filter",
                          .summary = "Whether keys may have been added",
                          .request = keys_schema,
                          .answers = {{200, "For each key", present_schema}},
                          .problems = {&problems::bad_body, &problems::no_filter},
                          .handler = calls(&BloomTools::contains)}));
  routes.add(door_.route({.method = "GET",
                          .path = "/v1/bloom/{name}",
                          .operation = "show_bloom_filter",
                          .summary = "How full a Bloom filter is",
                          .answers = {{200, "The filter", filter_schema}},
                          .problems = {&problems::no_filter},
                          .handler = calls(&BloomTools::show)}));
}

}  // namespace sluice::server
