#include "server/request_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "server/problems.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t longest_key = 128;

Unexpected<http::Response> refuse_part(const http::ProblemType& type, std::string_view detail) {
  return Unexpected{http::problem(type, detail)};
}

}  // namespace

Expected<std::string, http::Response> idempotency_key_of(const http::Request& request) {
  if (request.count("Idempotency-Key") > 1)
    return refuse_part(problems::no_idempotency_key, "the field stands there more than once");
  auto key = request.field("Idempotency-Key").value_or("");
  if (key.size() >= 2 && key.front() == '"' && key.back() == '"')
    key = key.substr(1, key.size() - 2);
  if (key.empty() || key.size() > longest_key || key.find_first_of("\"\\") != key.npos)
    return refuse_part(
        problems::no_idempotency_key,
        "send a random Idempotency-Key of 1 to 128 characters, the same with each repeat");
  return std::string{key};
}

Expected<JsonValue, http::Response> body_of(const http::Request& request,
                                            std::initializer_list<std::string_view> known) {
  if (request.body().empty()) return JsonValue{JsonValue::Object{}};
  auto body = JsonValue::parse(request.body(), {.bytes = 16 << 10, .depth = 4});
  if (!body) return refuse_part(problems::bad_body, body.error());
  const auto* const members = body->as_object();
  if (!members) return refuse_part(problems::bad_body, "it is no JSON object");
  for (const auto& [name, value] : *members)
    if (std::ranges::find(known, name) == known.end())
      return refuse_part(problems::bad_body,
                         fmt::format("'{}' is not known here", name.substr(0, 40)));
  return std::move(*body);
}

Expected<std::int64_t, http::Response> integer_of(const JsonValue& body,
                                                  const IntegerMember& member) {
  const auto* const value = body.find(member.name);
  if (!value) return member.otherwise;
  const auto* const number = value->as_integer();
  if (!number || *number < member.least || *number > member.most)
    return refuse_part(problems::bad_body, fmt::format("'{}' is a whole number from {} to {}",
                                                       member.name, member.least, member.most));
  return *number;
}

Expected<std::string, http::Response> text_of(const JsonValue& body, std::string_view name,
                                              std::size_t longest) {
  const auto* const value = body.find(name);
  if (!value) return std::string{};
  const auto* const text = value->as_text();
  if (!text || text->size() > longest)
    return refuse_part(problems::bad_body,
                       fmt::format("'{}' is a text of up to {} bytes", name, longest));
  return *text;
}

}  // namespace sluice::server
