/// What several requests have: the name of a wish, and a body that is a JSON object.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json_value.hpp"
#include "http/response.hpp"
#include "sluice/expected.hpp"

namespace sluice::server {

/// The Idempotency-Key: a string of structured fields, RFC 9651, or without its quotes, as many
/// clients send it. Else the refusal.
Expected<std::string, http::Response> idempotency_key_of(const http::Request& request);

/// The body as an object with no other members than these: others are a misspelt wish. No body is
/// an empty object.
Expected<JsonValue, http::Response> body_of(const http::Request& request,
                                            std::initializer_list<std::string_view> known);

/// A whole number in a range; `otherwise` where there is no such member.
struct IntegerMember {
  std::string_view name;
  std::int64_t least;
  std::int64_t most;
  std::int64_t otherwise;
};
Expected<std::int64_t, http::Response> integer_of(const JsonValue& body,
                                                  const IntegerMember& member);

/// A text of up to `longest` bytes; empty where there is no such member.
Expected<std::string, http::Response> text_of(const JsonValue& body, std::string_view name,
                                              std::size_t longest);

}  // namespace sluice::server
