/// Members of a body, read. What is wrong comes back as the answer to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_value.hpp"
#include "http/response.hpp"
#include "sluice/expected.hpp"

namespace sluice::server {

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
