#include "server/request_parts.hpp"

#include <fmt/format.h>

#include "server/problems.hpp"

namespace sluice::server {
namespace {

Unexpected<http::Response> refuse_member(std::string_view detail) {
  return Unexpected{http::problem(problems::bad_body, detail)};
}

}  // namespace

Expected<std::int64_t, http::Response> integer_of(const JsonValue& body,
                                                  const IntegerMember& member) {
  const auto* const value = body.find(member.name);
  if (!value) return member.otherwise;
  const auto* const number = value->as_integer();
  if (!number || *number < member.least || *number > member.most)
    return refuse_member(fmt::format("'{}' is a whole number from {} to {}", member.name,
                                     member.least, member.most));
  return *number;
}

Expected<std::string, http::Response> text_of(const JsonValue& body, std::string_view name,
                                              std::size_t longest) {
  const auto* const value = body.find(name);
  if (!value) return std::string{};
  const auto* const text = value->as_text();
  if (!text || text->size() > longest)
    return refuse_member(fmt::format("'{}' is a text of up to {} bytes", name, longest));
  return *text;
}

}  // namespace sluice::server
