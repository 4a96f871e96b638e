/// One answer, and what answers have in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "http/problem.hpp"
#include "http/request.hpp"

namespace sluice::http {

/// Date, Content-Length, Connection are not for handlers: the connection writes them.
struct Response {
  int status = 200;        ///< one of status.def: 500 goes out for another
  std::string_view media;  ///< Content-Type. REQUIRES: a literal. Empty: none
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields;

  /// Throws Error{bad_argument} for a name that is no token and a value with control characters:
  /// they would write fields of their own.
  Response& add(std::string_view name, std::string_view value) &;
  Response&& add(std::string_view name, std::string_view value) && {
    return std::move(add(name, value));
  }
};

inline constexpr std::string_view json_media = "application/json";
inline constexpr std::string_view problem_media = "application/problem+json";

Response json(int status, const Json& body);
/// `members`: an object; they stand beside type, title, status and detail.
Response problem(const ProblemType& type, std::string_view detail = {},
                 std::initializer_list<Json::Member> members = {});

/// Retry-After, in whole seconds, at least 1.
void add_retry_after(Response& response, std::chrono::nanoseconds delay);

/// RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11).
struct RateLimit {
  std::string_view name;  ///< of the policy: "buyer"
  std::uint64_t quota = 0;
  std::chrono::seconds window{};
  std::uint64_t remaining = 0;
  std::chrono::seconds until_reset{};
};
void add_rate_limit(Response& response, const RateLimit& limit);

/// Link to the page that begins behind `after`: the request's path and query with that cursor.
void add_next_page(Response& response, const Request& request, std::string_view after);

/// A strong entity tag: `"7"` of 7.
std::string entity_tag(std::string_view version);
/// 304 is the answer: If-None-Match names the tag (weakly compared), or is "*".
bool is_not_modified(const Request& request, std::string_view tag);
/// 412 is the answer: there is an If-Match, and it names neither the tag (strongly compared) nor
/// "*".
bool is_precondition_failed(const Request& request, std::string_view tag);

/// Status line, fields and body as they go out. `date`: an IMF-fixdate.
struct Framing {
  std::string_view date;
  bool is_head = false;  ///< the body is not sent, its length is
  bool keep_alive = true;
  bool is_http_1_0 = false;
  bool is_endless = false;  ///< the end of the connection is the end of the body
  bool is_tls = false;      ///< a browser is to come by TLS from now on
  std::string_view vary{};  ///< goes with the no-store of what does not say how long it is kept
};
void append(std::string& out, const Response& response, const Framing& framing);

/// "Tue, 24 Nov 2026 02:06:59 GMT"
std::string http_date(std::chrono::sys_time<std::chrono::microseconds> time);

}  // namespace sluice::http
