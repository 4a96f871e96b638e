#include "http/response.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <iterator>

#include "http/status.hpp"
#include "http/text.hpp"
#include "sluice/error.hpp"

namespace sluice::http {
namespace {

bool is_token(std::string_view text) noexcept {
  return !text.empty() && has_only(text, "!#$%&'*+-.^_`|~");
}

/// Whether the list of an If-Match or If-None-Match has the tag. Commas within a tag are rare
/// enough that such a tag simply does not match.
bool has_tag(std::string_view list, std::string_view tag, bool weakly) {
  bool found = false;
  for_each_item(list, [&](std::string_view item) {
    if (weakly && item.starts_with("W/")) item.remove_prefix(2);
    found = item == "*" || item == tag;
    return !found;
  });
  return found;
}

template <std::integral Number>
void append_number(std::string& out, Number number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

/// As Json writes it. REQUIRES: neither name nor title has what JSON escapes.
std::string plain_body_of(const ProblemType& type) {
  constexpr std::string_view begin = R"({"type":"urn:sluice:problem:)";
  std::string body;
  body.reserve(begin.size() + type.name.size() + type.title.size() + 32);
  body += begin;
  const auto name = body.size();
  body += type.name;
  std::replace(body.begin() + static_cast<std::ptrdiff_t>(name), body.end(), '_', '-');
  body += R"(","title":")";
  body += type.title;
  body += R"(","status":)";
  append_number(body, type.status);
  body += '}';
  return body;
}

bool has_body(int status) noexcept { return status >= 200 && status != 204 && status != 304; }

}  // namespace

std::string type_of(const ProblemType& problem) {
  std::string type = "urn:sluice:problem:";
  std::ranges::replace_copy(problem.name, std::back_inserter(type), '_', '-');
  return type;
}

Response& Response::add(std::string_view name, std::string_view value) & {
  if (!is_token(name) || std::ranges::any_of(value, is_control))
    throw Error{Errc::bad_argument, fmt::format("field '{}' of a response: not a token, or a value "
                                                "with control characters",
                                                name)};
  fields.emplace_back(name, value);
  return *this;
}

Response json(int status, const Json& body) {
  return {.status = status, .media = json_media, .body = body.text(), .fields = {}};
}

Response problem(const ProblemType& type, std::string_view detail,
                 std::initializer_list<Json::Member> members) {
  Response response{.status = type.status, .media = problem_media, .body = {}, .fields = {}};
  if (detail.empty() && members.size() == 0) {  // most refusals, in a sale that is sold out
    response.body = plain_body_of(type);
    return response;
  }
  auto body =
      Json::object({{"type", type_of(type)}, {"title", type.title}, {"status", type.status}});
  if (!detail.empty()) body.add("detail", detail);
  for (const auto& [name, value] : members) body.add(name, value);
  response.body = body.text();
  return response;
}

void add_retry_after(Response& response, std::chrono::nanoseconds delay) {
  const auto seconds =
      std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(delay).count());
  response.add("Retry-After", std::to_string(seconds));
}

void add_rate_limit(Response& response, const RateLimit& limit) {
  response.add("RateLimit-Policy",
               fmt::format("\"{}\";q={};w={}", limit.name, limit.quota, limit.window.count()));
  response.add("RateLimit", fmt::format("\"{}\";r={};t={}", limit.name, limit.remaining,
                                        limit.until_reset.count()));
}

void add_next_page(Response& response, const Request& request, std::string_view after) {
  std::string target{request.path()};
  char mark = '?';
  auto rest = request.raw_query();
  while (!rest.empty()) {
    const auto pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair == "after" || pair.starts_with("after=")) continue;
    target += std::exchange(mark, '&');
    target += pair;
  }
  response.add("Link", fmt::format("<{}{}after={}>; rel=\"next\"", target, mark, escape(after)));
}

std::string entity_tag(std::string_view version) { return fmt::format("\"{}\"", version); }

bool is_not_modified(const Request& request, std::string_view tag) {
  const auto list = request.field("If-None-Match");
  return list && has_tag(*list, tag, true);
}

bool is_precondition_failed(const Request& request, std::string_view tag) {
  const auto list = request.field("If-Match");
  return list && !has_tag(*list, tag, false);
}

void append(std::string& out, const Response& response, const Framing& framing) {
  const auto& status = statuses[status_row(response.status)];
  out += "HTTP/1.1 ";
  append_number(out, status.code);
  out += ' ';
  out += status.reason;
  out += "\r\nDate: ";
  out += framing.date;
  if (!response.media.empty()) {
    out += "\r\nContent-Type: ";
    out += response.media;
  }
  if (has_body(status.code) && !framing.is_endless) {
    out += "\r\nContent-Length: ";
    append_number(out, response.body.size());
  }
  bool says_how_long = false;
  for (const auto& [name, value] : response.fields) {
    says_how_long = says_how_long || name == "Cache-Control";
    out += "\r\n";
    out += name;
    out += ": ";
    out += value;
  }
  if (!says_how_long) {
    out += "\r\nCache-Control: no-store";
    if (!framing.vary.empty()) (out += "\r\nVary: ") += framing.vary;
  }
  if (framing.is_tls) out += "\r\nStrict-Transport-Security: max-age=31536000";
  if (!framing.keep_alive)
    out += "\r\nConnection: close";
  else if (framing.is_http_1_0)
    out += "\r\nConnection: keep-alive";
  out += "\r\n\r\n";
  if (!framing.is_head && has_body(status.code)) out += response.body;
}

std::string http_date(std::chrono::sys_time<std::chrono::microseconds> time) {
  return fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}",
                     std::chrono::floor<std::chrono::seconds>(time));
}

}  // namespace sluice::http
