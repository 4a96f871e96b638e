#include "server/operate_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "server/operate_text.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t longest_text = 1000;

Unexpected<http::Response> refuse_call(const http::ProblemType& type,
                                       std::string_view detail = {}) {
  return Unexpected{http::problem(type, detail)};
}

/// Why a member of a body is none; empty: it is.
std::string wrong_with(const BodyMember& member, const JsonValue* value) {
  if (!value) return member.is_needed ? fmt::format("'{}' is missing", member.name) : std::string{};
  if (member.kind == BodyMember::Kind::count) {
    const auto* const count = value->as_integer();
    if (!count || *count < 0) return fmt::format("'{}' is a whole number, at least 0", member.name);
    return {};
  }
  const auto* const text = value->as_text();
  if (text && text->empty() && member.kind == BodyMember::Kind::words)
    return fmt::format("'{}' is empty", member.name);
  if (!text || text->size() > longest_text)
    return fmt::format("'{}' is a text of up to {} bytes", member.name, longest_text);
  return {};
}

std::vector<BodyMember> members_of(const OperateCall& call) {
  auto members = call.body;
  // Where it is missing it is not confirmed, which is said otherwise.
  if (call.is_final) members.push_back({"confirm", BodyMember::Kind::text, false});
  return members;
}

}  // namespace

Expected<JsonValue, http::Response> body_of_call(const OperateCall& call, const std::string& text) {
  const auto members = members_of(call);
  auto body = text.empty() ? JsonValue{JsonValue::Object{}} : JsonValue{};
  if (!text.empty()) {
    auto parsed = JsonValue::parse(text, {.bytes = 16 << 10, .depth = 4});
    if (!parsed) return refuse_call(problems::bad_body, parsed.error());
    body = std::move(*parsed);
  }
  const auto* const there = body.as_object();
  if (!there) return refuse_call(problems::bad_body, "it is no JSON object");
  for (const auto& [name, value] : *there)
    if (std::ranges::find(members, name, &BodyMember::name) == members.end())
      return refuse_call(problems::bad_body,
                         fmt::format("'{}' is not known here", name.substr(0, 40)));
  for (const auto& member : members)
    if (const auto wrong = wrong_with(member, body.find(member.name)); !wrong.empty())
      return refuse_call(problems::bad_body, wrong);
  return body;
}

std::string text_outside(OfferedSale& sale, const Sale& part, const std::string& within) {
  const auto parts = sale.parts();
  const auto which = std::ranges::find(parts, &part) - parts.begin();
  return sale.text_of({.part = static_cast<std::size_t>(which), .within = within});
}

http::Response wrong_parameter(std::string_view detail) {
  return http::problem(problems::bad_parameter, detail);
}

http::Response page_over_parts(Asked& asked, const char* name, const ReadPart& read) {
  auto& sale = asked.offer->sale();
  const auto parts = sale.parts();
  auto place = sale.place_of(asked.after);
  if (!place) return wrong_parameter("'after' is `next` of the page before");
  auto all = Json::array();
  std::size_t count = 0;
  std::optional<std::string> next;
  while (!next) {
    const auto listed = read(*parts[place->part], place->within, asked.most - count);
    if (!listed) return listed.error();
    for (const auto& item : listed->items) all.add(item);
    count += listed->items.size();
    const bool is_done = listed->next.empty();
    if (is_done && place->part + 1 == parts.size()) break;
    place = OfferedSale::Place{.part = place->part + (is_done ? 1 : 0), .within = listed->next};
    if (!is_done || count >= asked.most) next = sale.text_of(*place);
  }
  return http::json(200, Json::object({{name, all}, {"next", next ? Json{*next} : Json{}}}));
}

std::string schema_of(const OperateCall& call) {
  if (call.method == "GET") return {};
  auto properties = Json::object();
  auto needed = Json::array();
  for (const auto& member : members_of(call)) {
    auto schema = member.kind == BodyMember::Kind::count
                      ? Json::object({{"type", "integer"}, {"minimum", 0}})
                      : Json::object({{"type", "string"}, {"maxLength", longest_text}});
    if (member.kind == BodyMember::Kind::words) schema.add("minLength", 1);
    properties.add(member.name, schema);
    if (member.is_needed || std::string_view{member.name} == "confirm") needed.add(member.name);
  }
  return Json::object({{"type", "object"},
                       {"additionalProperties", false},
                       {"required", needed},
                       {"properties", properties}})
      .text();
}

std::string detail_of(const OperateCall& call, const Asked& asked) {
  std::string detail;
  const auto add = [&](std::string_view name, std::string_view value) {
    detail += fmt::format("{}{}={}", detail.empty() ? "" : " ", name, value);
  };
  for (const auto* const name : {"id", "order", "provider", "event"})
    if (call.path.contains(fmt::format("{{{}}}", name)))
      add(name, cut(asked.request.parameter(name)));
  for (const auto& member : call.body) {
    const auto* const value = asked.body.find(member.name);
    if (!value) continue;
    if (const auto* const text = value->as_text()) add(member.name, *text);
    if (const auto* const number = value->as_integer()) add(member.name, fmt::to_string(*number));
  }
  return detail;
}

std::vector<const http::ProblemType*> problems_of(const OperateCall& call) {
  auto all = call.problems;
  all.insert(all.end(),
             {&problems::unknown_key, &problems::not_allowed, &problems::no_operators,
              &problems::other_host, &problems::too_many_requests, &problems::busy,
              &problems::store_failed, &problems::database_failed, &problems::bad_parameter});
  if (call.path.contains("{sale}")) all.push_back(&problems::no_sale);
  if (call.method == "POST")
    all.insert(all.end(),
               {&problems::not_same_origin, &problems::bad_body, &problems::effect_unknown});
  if (call.is_final) all.push_back(&problems::not_confirmed);
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  return all;
}

std::vector<http::Parameter> parameters_of(const OperateCall& call) {
  auto all = call.parameters;
  if (call.has_pages) {
    all.push_back({"after", "query", "Behind this one: `next` of the page before"});
    all.push_back({"most", "query", "On a page, 1 to 500", false,
                   R"({"type":"integer","minimum":1,"maximum":500,"default":100})"});
  }
  return all;
}

}  // namespace sluice::server
