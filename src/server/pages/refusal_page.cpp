#include "server/pages/refusal_page.hpp"

#include <algorithm>

#include "base/instant.hpp"
#include "base/integer.hpp"
#include "base/json_value.hpp"
#include "base/random.hpp"
#include "server/pages/frame.hpp"
#include "server/pages/visitors.hpp"

namespace sluice::server {
namespace {

/// The service, the store or a proxy is short of something for a moment.
bool passes(int status) { return status == 429 || status >= 500; }

/// When Retry-After says; with a little chance, so that those who were refused together do not come
/// back together.
std::chrono::milliseconds time_to_come_back(const http::Response& refusal) {
  constexpr std::int64_t usual = 5;
  auto seconds = usual;
  for (const auto& [name, value] : refusal.fields)
    if (name == "Retry-After") seconds = parse_integer<std::int64_t>(value).value_or(usual);
  return std::chrono::seconds{seconds} + std::chrono::milliseconds{random_below(2000)};
}

std::string member_of(const JsonValue* object, std::string_view name) {
  const auto* const value = object ? object->find(name) : nullptr;
  return value && value->as_text() ? *value->as_text() : std::string{};
}

}  // namespace

http::Response refusal_page(const http::Response& refusal, const RefusalView& view) {
  const auto problem = JsonValue::parse(refusal.body, {.bytes = 16 << 10});
  const auto* const members = problem ? &*problem : nullptr;
  const auto* const order = members ? members->find("order") : nullptr;
  PageText text;
  text.title << member_of(members, "title");
  if (!view.sale.empty()) text.head << "<h1>"_html << view.sale << "</h1>\n"_html;
  text.status << "<p class=\"state no\">"_html << member_of(members, "title") << "</p>\n"_html;
  if (const auto detail = member_of(members, "detail"); !detail.empty())
    text.status << "<p>"_html << detail << "</p>\n"_html;
  if (const auto* const left = members ? members->find("left") : nullptr;
      left && left->as_integer())
    text.status << "<p>"_html << *left->as_integer() << " left</p>\n"_html;
  if (const auto opens = parse_instant(member_of(members, "opens_at")))
    text.status << "<p>It opens "_html << time_html(*opens) << ".</p>\n"_html;
  text.rest << view.again;
  if (const auto id = member_of(order, "id"); !id.empty())
    text.rest << "<p>Your order: <a href=\""_html << path_of_page(view.sale) << "/orders/"_html
              << id << "\">"_html << member_of(order, "number") << "</a></p>\n"_html;
  if (!view.sale.empty())
    text.rest << "<p><a href=\""_html << path_of_page(view.sale)
              << "\">Back to the sale</a></p>\n"_html;
  if (view.comes_back && passes(refusal.status)) text.again = time_to_come_back(refusal);
  auto response = page(refusal.status, text);
  for (const auto& [name, value] : refusal.fields)
    if (name == "Retry-After" || name == "WWW-Authenticate") response.add(name, value);
  return response;
}

}  // namespace sluice::server
